// Identifies callers: the first policy that knows the request's credentials decides.
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { LruCache } from "#basics/bounded.ts"
import { natsPolicy, nobodyIdFault } from "#domain/publisher.ts"
import type { UserToken } from "#streams/tokens.ts"
import { authenticated, authenticationsOf } from "#telemetry/request-metrics.ts"
import { kinds } from "./kinds.ts"
import { LinkRefused, sessionPrefix } from "./login/links.ts"
import { ownPolicy } from "./policies/own-module.ts"
import { ownTokenPrefix } from "./policies/token.ts"
import type { Policy } from "./policy.ts"
import {
  isAddressHmac,
  isUser,
  principalsOf,
  pseudonyms,
  useridSecret,
  userNames
} from "./principals.ts"
import { IdentitySettings, kindOf, type NamedPolicy } from "./settings.ts"
import { claimsOf } from "./tokens/jwt.ts"
import {
  type Credentials,
  type IdentityUnavailable,
  type Invalid,
  identificationMillis,
  invalidBecause,
  invalidToken,
  type Known,
  known,
  type TokenRights,
  type TooManyFailures,
  type Verdict
} from "./verdict.ts"
import { Failures } from "./verification/failures.ts"
import { credentialKeys, Verifications } from "./verification/verifications.ts"

export interface User {
  /** `<policy>:<id>` */
  readonly id: string
  /** The pseudonym of the user in subjects and keys. */
  readonly user: UserToken
}

export interface Caller extends User {
  readonly policy: string
  /** Whether the policy verified the caller. */
  readonly verified: boolean
  readonly principals: ReadonlyArray<string>
  /** The rights of a token, which may do nothing else. */
  readonly rights?: TokenRights
}

/** The outcome for a request: a caller, or why the policies did not accept its credentials. */
export interface Identified {
  readonly caller: Caller | undefined
  /** By the name of the policy. */
  readonly invalid: ReadonlyMap<string, Invalid>
}

/** The request as the gateway has it. */
export interface Asking
  extends Pick<Credentials, "headers" | "address" | "fromTrustedProxy" | "isRepeated"> {
  /** The headers that arrived on the connection. */
  readonly received: Credentials["headers"]
  /** The source that sends the request on NATS; unset over HTTP. */
  readonly source?: string
}

type Failure = IdentityUnavailable | TooManyFailures

/** A session of the console, as the page gets it. */
export interface ConsoleSession {
  readonly token: string
  /** The user's id, with its policy. */
  readonly id: string
  /** Milliseconds since the epoch. */
  readonly until: number
}

export class Identity extends Context.Service<
  Identity,
  {
    /** Fails when no policy knows the caller and one could not say. */
    readonly identify: (asking: Asking) => Effect.Effect<Identified, Failure>
    readonly policies: ReadonlyArray<Policy>
    /** Opens a session of the console for the token of a site's link, once. */
    readonly openSession: (
      token: string,
      address: string
    ) => Effect.Effect<ConsoleSession, LinkRefused | Failure>
    /** Ends a session of the console; false: the credentials are none. */
    readonly closeSession: (asking: Asking) => Effect.Effect<boolean, IdentityUnavailable>
    /** The user of an id, in which a mail address may stand; undefined: there is none. */
    readonly userOf: (id: string) => User | undefined
    /** Whether `userOf` finds a user, at a tenth of its cost. */
    readonly isUserId: (id: string) => boolean
  }
>()("bellcast/identity/Identity") {
  static readonly layer = Layer.effect(
    Identity,
    Effect.gen(function* () {
      const { authPolicies } = yield* IdentitySettings
      const policies = yield* Effect.forEach(authPolicies, makePolicy)
      authenticationsOf(policies.map(({ name }) => name))
      const secret = yield* useridSecret
      const callerOf = makeCallers(secret)
      const failures = yield* Failures
      const owners = yield* makeTokenOwners
      /**
       * Asks the policies in order. Counts a failure of the address when none of them knows the
       * caller: users of a later policy are no failures of an earlier one.
       */
      const identify = Effect.fnUntraced(function* (asking: Asking) {
        const { source } = asking
        if (source !== undefined) {
          const caller = isUser(source) ? callerOf(sources, known(source)) : undefined
          return { caller, invalid: new Map() }
        }
        const given = credentialsOf(asking)
        const asked: Asked = { invalid: new Map(), failure: undefined }
        const chosen = candidates(policies, given)
        const credentials = { ...given, patienceMillis: patienceOf(chosen) }
        for (const policy of yield* owners.order(chosen, credentials)) {
          const known = yield* ask(policy, credentials, asked)
          if (known === undefined) continue
          yield* owners.knew(chosen, credentials, policy)
          return { caller: callerOf(policy, known), invalid: asked.invalid }
        }
        const isCounted = isFailure(credentials, asked)
        const tooMany = isCounted ? yield* failures.count(credentials.address) : undefined
        const failure = asked.failure ?? tooMany
        if (failure !== undefined) return yield* failure
        return { caller: undefined, invalid: invalidOf(policies, credentials, asked) }
      })
      const consoleSessions = makeConsoleSessions(policies, failures, callerOf)
      return Identity.of({
        identify,
        policies,
        ...consoleSessions,
        ...makeUsers(secret, authPolicies)
      })
    })
  ).pipe(
    Layer.provide(Verifications.layer),
    Layer.provide(Failures.layer),
    Layer.provide(IdentitySettings.layer)
  )
}

/** The time for each policy, so that all who wait for somebody stay within the limit together. */
const patienceOf = (policies: ReadonlyArray<Policy>): number =>
  identificationMillis / Math.max(1, policies.filter(({ waits }) => waits === true).length)

const makePolicy = ({ module, name }: NamedPolicy) =>
  module === undefined ? kinds[kindOf(name)!].make(name) : ownPolicy(name, module)

/**
 * The policies to ask, in order. A token goes to the policies that it names, so that a secret of
 * ours never reaches somebody else's server.
 */
const candidates = (
  policies: ReadonlyArray<Policy>,
  { scheme, token }: Credentials
): ReadonlyArray<Policy> => {
  if (scheme !== "bearer" || !isWellFormed(token))
    return policies.filter(({ bearer }) => bearer === undefined)
  const named = policies.filter(({ bearer }) => bearer?.kind === "local" && bearer.isFor(token))
  if (named.length > 0) return named
  return token.startsWith(ownTokenPrefix) || token.startsWith(sessionPrefix)
    ? []
    : policies.filter(({ bearer }) => bearer?.kind !== "local")
}

/**
 * RFC 6750 section 2.1. Other texts are not sent or decoded: decoders of base64 skip blanks, so a
 * valid token would have any number of spellings, each with a verification of its own.
 */
const isWellFormed = (token: string): boolean => /^[A-Za-z0-9._~+/-]+=*$/.test(token)

/** About 150 bytes each. */
const ownersMax = 20_000

/**
 * Remembers which of several remote policies knows a token, and asks that one first. Else each
 * token of the last policy would be sent to all servers before it, every ten seconds.
 */
export const makeTokenOwners = Effect.gen(function* () {
  const keyOf = yield* credentialKeys
  const { authVerificationTtlSeconds } = yield* IdentitySettings
  const owners = new LruCache<string>(ownersMax)
  const ownerOf = (token: string, now: number) => owners.get(keyOf("owner", token), now)

  /** The policies in the order in which they are asked about these credentials. */
  const order = Effect.fnUntraced(function* (
    policies: ReadonlyArray<Policy>,
    { token }: Credentials
  ) {
    if (policies.filter(isRemote).length < 2) return policies
    const owner = ownerOf(token, yield* Clock.currentTimeMillis)
    if (owner === undefined) return policies
    const isLater = (policy: Policy) => isRemote(policy) && policy.name !== owner
    return [...policies.filter((each) => !isLater(each)), ...policies.filter(isLater)]
  })

  /** Remembers the policy that knew the token, for as long as a verification holds. */
  const knew = Effect.fnUntraced(function* (
    policies: ReadonlyArray<Policy>,
    { token }: Credentials,
    policy: Policy
  ) {
    if (!isRemote(policy) || policy === policies.find(isRemote)) return
    const now = yield* Clock.currentTimeMillis
    // Never extended by use: the order in the setting counts again after this time.
    if (ownerOf(token, now) === policy.name) return
    owners.set(keyOf("owner", token), policy.name, now + authVerificationTtlSeconds * 1000)
  })
  return { order, knew }
})

const isRemote = ({ bearer }: Policy): boolean => bearer?.kind === "remote"

/** The verdicts of the policies on one request so far. */
interface Asked {
  readonly invalid: Map<string, Invalid>
  failure: Failure | undefined
}

/** Asks one policy. One that is unavailable is passed over, unless nobody else knows the caller. */
const ask = Effect.fnUntraced(function* (policy: Policy, credentials: Credentials, asked: Asked) {
  const verdict: Verdict | undefined = yield* Effect.catch(
    policy.identify(credentials),
    (error) => {
      asked.failure ??= error
      authenticated(policy.name, "unavailable")
      return Effect.succeed(undefined)
    }
  )
  if (verdict === undefined) return undefined
  authenticated(policy.name, verdict._tag === "Known" ? "known" : "invalid")
  if (verdict._tag === "Known") return verdict
  asked.invalid.set(policy.name, verdict)
  return undefined
})

/**
 * Whether a request without a user is a failure of its address: there were credentials, in
 * Authorization or in headers that a policy refused, and every policy could say. While a server is
 * away, its tokens may be good.
 */
const isFailure = ({ headers }: Credentials, { failure, invalid }: Asked): boolean =>
  failure === undefined && ((headers["authorization"] ?? "") !== "" || invalid.size > 0)

/** The errors by policy. A bearer token that names no policy is invalid for each of them. */
const invalidOf = (
  policies: ReadonlyArray<Policy>,
  { scheme, token }: Credentials,
  { invalid }: Asked
): Asked["invalid"] => {
  if (scheme !== "bearer" || invalid.size > 0) return invalid
  const bearers = policies.filter(({ bearer }) => bearer !== undefined)
  const verdict =
    claimsOf(token) === undefined
      ? invalidToken
      : invalidBecause("no policy takes tokens with this iss and aud")
  return new Map(bearers.map(({ name }) => [name, verdict]))
}

/** The policy of callers on NATS, which checked who they are. */
const sources = { name: natsPolicy, verifies: true }

/** A function from what a policy knows to the caller. */
const makeCallers = (secret: string) => {
  const pseudonymOf = pseudonyms(secret)
  const nameOf = userNames(secret)
  type From = Pick<Policy, "name" | "verifies">
  return ({ name: policy, verifies: verified }: From, known: Known): Caller => {
    const id = `${policy}:${nameOf(known.user)}`
    const { groups, rights } = known
    const principals = principalsOf(id, policy, groups.map(nameOf))
    return { id, policy, verified, user: pseudonymOf(id), principals, ...(rights && { rights }) }
  }
}

const noPolicyForLink = new LinkRefused({
  why: "invalid",
  description: "No policy signed takes the token of this link"
})

/**
 * The functions for sessions of the console. A link that is refused is a failure of its address.
 */
const makeConsoleSessions = (
  policies: ReadonlyArray<Policy>,
  failures: Failures["Service"],
  callerOf: ReturnType<typeof makeCallers>
): Pick<Identity["Service"], "closeSession" | "openSession"> => ({
  openSession: Effect.fnUntraced(function* (token, address) {
    // Links are new each time, so none of them was good before.
    yield* failures.admit("", address)
    const policy = policies.find(({ links }) => links?.isForLink(token))
    const opened = policy?.links?.open(token) ?? noPolicyForLink
    const {
      known,
      token: session,
      until
    } = yield* Effect.tapErrorTag(opened, "LinkRefused", () =>
      Effect.flatMap(failures.count(address), (tooMany) => tooMany ?? Effect.void)
    )
    return { token: session, id: callerOf(policy!, known).id, until }
  }),
  closeSession: Effect.fnUntraced(function* (asking) {
    const { scheme, token } = credentialsOf(asking)
    const links = policies.find((policy) => policy.links?.isForSession(token))?.links
    if (scheme !== "bearer" || links === undefined) return false
    yield* links.close(token)
    return true
  })
})

/** The functions that read the id of a user, or one with a mail address in it. */
const makeUsers = (secret: string, policies: ReadonlyArray<NamedPolicy>) => {
  const pseudonymOf = pseudonyms(secret)
  const nameOf = userNames(secret)
  const read = (given: string) => {
    const [, policy, name = ""] = /^([^:]*):(.*)$/s.exec(given) ?? []
    const isOurs = policies.some((each) => each.name === policy)
    if (!isOurs || nobodyIdFault(given) !== undefined) return undefined
    return isAddressHmac(name) || isUser(name) ? { policy, name } : undefined
  }
  return {
    isUserId: (given: string): boolean => read(given) !== undefined,
    userOf: (given: string): User | undefined => {
      const found = read(given)
      if (found === undefined) return undefined
      const id = `${found.policy}:${nameOf(found.name)}`
      return { id, user: pseudonymOf(id) }
    }
  }
}

/** RFC 9110 section 11.4: a scheme, blanks, and what the scheme defines. */
const authorization = /^([A-Za-z][A-Za-z0-9!#$%&'*+.^_`|~-]*)(?: +(.*))?$/s

/**
 * The credentials of a request. An entry of a batch may have an Authorization of its own; all other
 * headers are those that arrived, as whoever sends the batch chooses the headers of its entries.
 */
export const credentialsOf = (asking: Asking): Credentials => {
  const { address, fromTrustedProxy, isRepeated, received } = asking
  const headers = { ...received, authorization: asking.headers["authorization"] }
  const [, scheme = "", token = ""] =
    authorization.exec(headers["authorization"]?.trim() ?? "") ?? []
  const said = { headers, scheme: scheme.toLowerCase(), token: token.trim() }
  const from = { address, fromTrustedProxy, isRepeated }
  return { ...said, ...from, patienceMillis: identificationMillis }
}
