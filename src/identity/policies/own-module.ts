// A policy that an operator wrote: a module with one async function. Whatever it does wrong is
// bounded and reported: it may throw, hang, or return anything.
import { resolve } from "node:path"
import { pathToFileURL } from "node:url"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import { settingsFault } from "#settings/every-setting.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import type { Policy } from "../policy.ts"
import { isUser, usableGroups, userTextOf } from "../principals.ts"
import type { Credentials } from "../verdict.ts"
import { IdentityUnavailable, known, type Verdict } from "../verdict.ts"
import { Failures } from "../verification/failures.ts"
import { credentialKeys } from "../verification/verifications.ts"

/** The `default` export of an operator's module. */
export interface OwnPolicy {
  /** For WWW-Authenticate, such as `Bearer realm="acme"`. */
  readonly challenge?: string
  readonly description?: string
  readonly url?: string
  /** Resolves with the user, or with nothing for credentials that it does not know. */
  readonly authenticate: (request: {
    /** Names are in lower case. */
    readonly headers: Readonly<Record<string, string | undefined>>
    /** The scheme of Authorization in lower case, and what follows it; "" without the header. */
    readonly scheme: string
    readonly token: string
  }) => Promise<OwnUser | null | undefined>
  /** Whether the server on which the policy depends works. */
  readonly isUp?: () => Promise<boolean>
}

interface OwnUser {
  readonly user: string | number
  readonly groups?: ReadonlyArray<string>
}

const callMillisMax = 3_000
/** Calls at once. A call that never ends holds its place until its timeout. */
const callsMax = 256

export const ownPolicy = Effect.fnUntraced(function* (name: string, file: string) {
  const own = yield* load(name, file)
  const call = calling(name, own)
  const keyOf = yield* credentialKeys
  const failures = yield* Failures
  const identify = Effect.fnUntraced(function* (credentials: Credentials) {
    const authorization = credentials.headers["authorization"]
    if (authorization === undefined) return yield* call(credentials)
    const key = keyOf(name, authorization)
    yield* failures.admit(key, credentials.address)
    const verdict = yield* call(credentials)
    if (verdict?._tag === "Known") yield* failures.good(key)
    return verdict
  })
  const policy: Policy = {
    name,
    verifies: true,
    challenge: own.challenge ?? `${name} realm="Realm"`,
    capability: { description: own.description ?? "A policy of this server.", url: own.url ?? "" },
    waits: true,
    identify,
    ...(own.isUp && { isUp: isUpOf(own.isUp) })
  }
  return policy
})

const load = Effect.fnUntraced(function* (name: string, file: string) {
  const fault = (text: string) =>
    settingsFault([`BELLCAST_AUTH_POLICIES: ${name}: the module ${file} ${text}`])
  const path = pathToFileURL(resolve(file)).href
  const loaded = yield* Effect.tryPromise({
    try: () => import(path) as Promise<{ readonly default?: Partial<OwnPolicy> }>,
    catch: (error) => fault(`cannot be loaded: ${(error as Error).message}`)
  }).pipe(
    Effect.timeoutOrElse({
      duration: "10 seconds",
      orElse: () => Effect.fail(fault("was not loaded within 10 seconds"))
    })
  )
  const wrong = moduleFault(loaded.default)
  if (wrong !== undefined) return yield* fault(wrong)
  return loaded.default as OwnPolicy
})

const moduleFault = (own: Partial<OwnPolicy> | undefined): string | undefined => {
  if (typeof own?.authenticate !== "function")
    return "must export as default an object with the function authenticate"
  if (own.isUp !== undefined && typeof own.isUp !== "function") return "isUp must be a function"
  return [own.challenge, own.description, own.url].every(isOptionalText)
    ? undefined
    : "challenge, description and url must be texts of printable ASCII characters"
}

const isOptionalText = (value: unknown): boolean =>
  value === undefined || (typeof value === "string" && /^[\x20-\x7e]*$/.test(value))

/** A function that calls the module, within its bounds. */
const calling = (name: string, own: OwnPolicy) => {
  const permits = Semaphore.makeUnsafe(callsMax)
  const warn = makeRateLimitedLog(`the policy ${name} failed`, Effect.logError)
  const unavailable = (cause: string) => new IdentityUnavailable({ policy: name, cause })
  return ({ headers, patienceMillis, scheme, token }: Credentials) =>
    Effect.tryPromise({
      // Getters of the result may throw, too.
      try: async () =>
        verdictOf(await own.authenticate({ headers: { ...headers }, scheme, token })),
      catch: (error) => unavailable(`threw ${classOf(error)}`)
    }).pipe(
      Effect.timeoutOrElse({
        duration: Math.min(callMillisMax, patienceMillis),
        orElse: () => Effect.fail(unavailable("did not respond in time"))
      }),
      permits.withPermitsIfAvailable(1),
      Effect.flatMap((result) =>
        result._tag === "Some"
          ? Effect.succeed(result.value)
          : Effect.fail(unavailable(`has ${callsMax} calls under way`))
      ),
      Effect.filterOrFail(
        (verdict): verdict is Verdict | undefined => verdict !== "garbage",
        () => unavailable("returned something that is no user")
      ),
      Effect.tapError(({ cause }) => warn({ why: cause }))
    )
}

const verdictOf = (found: unknown): Verdict | undefined | "garbage" => {
  if (found === undefined || found === null) return undefined
  const { groups = [], user: given } = found as Partial<OwnUser>
  const user = userTextOf(given)
  if (!isUser(user) || !Array.isArray(groups)) return "garbage"
  return groups.every((group) => typeof group === "string")
    ? known(user, usableGroups(groups))
    : "garbage"
}

/**
 * The class of what a module threw, without its members: they may hold a token, or throw when they
 * are read.
 */
const classOf = (thrown: unknown): string => {
  try {
    const name: unknown = Object.getPrototypeOf(thrown)?.constructor?.name
    return typeof name === "string" && /^[A-Za-z]{1,40}$/.test(name) ? name : typeof thrown
  } catch {
    return typeof thrown
  }
}

const isUpOf = (isUp: () => Promise<boolean>): Effect.Effect<boolean> =>
  Effect.tryPromise(async () => (await isUp()) === true).pipe(
    Effect.timeout(callMillisMax),
    Effect.orElseSucceed(() => false)
  )
