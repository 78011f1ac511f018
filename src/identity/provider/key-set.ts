// The public keys of an OpenID Connect issuer: found by its discovery document, fetched at most
// once per cooldown, and used for a stated time while the issuer is away. createRemoteJWKSet of
// jose 6.2.17 is not used: by its source, keys older than 10 minutes are not used during an outage,
// a failed fetch begins no cooldown, and a token of a key not fetched yet is refused as invalid.
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type { JSONWebKeySet } from "jose"
import { LruCache } from "#basics/bounded.ts"
import { isObject, type JsonObject } from "#basics/json.ts"
import { monotonicMillis } from "#clock/clocks.ts"
import { IdentityUnavailable } from "../verdict.ts"
import type { Send } from "./client.ts"
import { discoveredUrlFault } from "./client.ts"

/** Keys are fetched again after this time, and for a key id that they lack. */
const freshMillis = 600_000
/**
 * The shortest time between two fetches for unknown keys, however many tokens name some. Fetches
 * for another reason, such as a heartbeat, do not count: else new keys would be found late.
 */
const cooldownMillis = 10_000
/** Unknown keys that are remembered, and for how long: anybody can make them up. */
const unknownMax = 1_000
const unknownMillis = 600_000
/** The same while there are no keys at all, so that a start heals soon. */
const firstCooldownMillis = 2_000
/**
 * How long tokens with unknown keys wait for a fetch. Else made-up keys would take all places of
 * the tokens under verification while the issuer does not respond.
 */
const fetchWaitMillis = 2_000
/** How long keys are used while the issuer does not respond. */
const staleMillis = 24 * 3_600_000

/** The discovery document of an issuer (OpenID Connect Discovery section 3). */
export interface Discovered {
  readonly issuer: string
  readonly jwks_uri: string
  readonly authorization_endpoint?: string
  readonly token_endpoint?: string
  readonly userinfo_endpoint?: string
  /** Whether its responses name it (RFC 9207 section 3). */
  readonly authorization_response_iss_parameter_supported?: unknown
  readonly id_token_signing_alg_values_supported?: unknown
  /** Of Portier: a login may choose the algorithm. */
  readonly accepts_id_token_signing_alg_query_param?: unknown
}

export interface IssuerKeys {
  readonly discovered: Discovered
  readonly keys: JSONWebKeySet
  /** When these keys were asked for, by the monotonic clock. */
  readonly fetchedAt: number
}

export interface KeySet {
  /** The keys, fetched if there are none that may be used. */
  readonly current: Effect.Effect<IssuerKeys, IdentityUnavailable>
  /**
   * The keys for a token whose key (its `kid`) `current` lacks, after another fetch, at most one
   * per cooldown. Fails unless these have the key, or were fetched after it was first asked for:
   * until then the key may be a new one, and its tokens are not invalid.
   */
  readonly refreshed: (kid: string) => Effect.Effect<IssuerKeys, IdentityUnavailable>
  /** Whether the issuer responds, by a fetch at most once per cooldown. */
  readonly isUp: Effect.Effect<boolean>
}

type Fetch = Effect.Effect<IssuerKeys, IdentityUnavailable>

interface State {
  readonly policy: string
  readonly fetch: Fetch
  readonly scope: Scope.Scope
  latest: IssuerKeys | undefined
  /** When the last fetch began, by the monotonic clock. */
  triedAt: number
  /** When the last fetch for an unknown key began. */
  soughtAt: number
  /** When keys that were unknown were first asked for, by their `kid`. */
  readonly unknown: LruCache<number>
  /** Why the last fetch failed; undefined: it did not. */
  failure: IdentityUnavailable | undefined
  fiber: Fiber.Fiber<IssuerKeys, IdentityUnavailable> | undefined
}

/** The keys of an issuer. The first fetch is made by the first token: a start needs no issuer. */
export const makeKeySet = Effect.fnUntraced(function* (policy: string, issuer: string, send: Send) {
  const state: State = {
    policy,
    fetch: fetchKeys(policy, issuer, send),
    scope: yield* Effect.scope,
    latest: undefined,
    triedAt: Number.NEGATIVE_INFINITY,
    soughtAt: Number.NEGATIVE_INFINITY,
    unknown: new LruCache(unknownMax),
    failure: undefined,
    fiber: undefined
  }
  const keySet: KeySet = {
    current: currentOf(state),
    refreshed: (kid) => refreshedOf(state, kid),
    isUp: refresh(state).pipe(
      Effect.map(() => state.failure === undefined),
      Effect.orElseSucceed(() => false)
    )
  }
  return keySet
})

const currentOf = Effect.fnUntraced(function* (state: State) {
  const now = yield* monotonicMillis
  const usable = usableAt(state, now)
  if (usable === undefined) return yield* refresh(state)
  const isOld = now - usable.fetchedAt >= freshMillis && now - state.triedAt >= cooldownMillis
  // The old keys serve until the new ones are there.
  if (isOld) yield* fetching(state, now)
  return usable
})

const refreshedOf = Effect.fnUntraced(function* (state: State, kid: string) {
  const now = yield* monotonicMillis
  const askedAt = state.unknown.get(kid, now) ?? now
  state.unknown.set(kid, askedAt, now + unknownMillis)
  const isRunning = runningOf(state) !== undefined
  const maySeek = now - state.soughtAt >= cooldownMillis
  if (!isRunning && maySeek) state.soughtAt = now
  if (isRunning || maySeek) yield* awaitFetch(state, now)
  if (state.failure !== undefined) return yield* state.failure
  const latest = usableAt(state, now)
  const isAnswer =
    latest !== undefined &&
    (latest.fetchedAt >= askedAt || latest.keys.keys.some((key) => key["kid"] === kid))
  return isAnswer ? latest : yield* unavailable(state, "the keys were not fetched for this token")
})

/** Fetches unless a fetch began within the cooldown; then returns what there is. */
const refresh = Effect.fnUntraced(function* (state: State) {
  const now = yield* monotonicMillis
  const usable = usableAt(state, now)
  const cooldown = usable === undefined ? firstCooldownMillis : cooldownMillis
  const mayFetch = runningOf(state) !== undefined || now - state.triedAt >= cooldown
  if (usable === undefined)
    return mayFetch
      ? yield* Effect.flatMap(fetching(state, now), Fiber.join)
      : yield* unavailable(state, "no keys")
  if (mayFetch) yield* awaitFetch(state, now)
  return state.latest ?? usable
})

/** Waits for the running fetch or a new one, for `fetchWaitMillis` from its beginning. */
const awaitFetch = Effect.fnUntraced(function* (state: State, now: number) {
  const fiber = yield* fetching(state, now)
  const leftMillis = Math.max(0, state.triedAt + fetchWaitMillis - now)
  yield* Effect.ignore(Effect.timeout(Fiber.await(fiber), leftMillis))
})

const usableAt = ({ latest }: State, now: number): IssuerKeys | undefined =>
  latest !== undefined && now - latest.fetchedAt < staleMillis ? latest : undefined

const unavailable = ({ failure, policy }: State, cause: string) =>
  failure ?? new IdentityUnavailable({ policy, cause })

/** The running fetch or a new one. One synchronous step: else two callers could both start one. */
const fetching = (state: State, now: number) =>
  Effect.contextWith((context: Context.Context<never>) =>
    Effect.succeed(runningOf(state) ?? start(state, now, context))
  )

/** The fetch that is under way. */
const runningOf = ({ fiber }: State) => (fiber?.pollUnsafe() === undefined ? fiber : undefined)

/** Starts a fetch in a fiber of its own. */
const start = (state: State, now: number, context: Context.Context<never>) => {
  state.triedAt = now
  const fetch = state.fetch.pipe(
    Effect.tap((fetched) => Effect.sync(() => replace(state, fetched))),
    Effect.tapError((error) => Effect.logError("the keys of an issuer cannot be fetched", error)),
    Effect.onExit((exit) =>
      Effect.sync(() => {
        state.failure = Option.getOrUndefined(Exit.findErrorOption(exit))
      })
    )
  )
  state.fiber = Fiber.runIn(Effect.runForkWith(context)(fetch), state.scope)
  return state.fiber
}

/** Replaces the keys. Those that are gone are known to be gone: the issuer had them before. */
const replace = (state: State, fetched: IssuerKeys): void => {
  const { latest } = state
  for (const { kid } of latest?.keys.keys ?? [])
    state.unknown.set(String(kid), latest!.fetchedAt, fetched.fetchedAt + unknownMillis)
  state.latest = fetched
}

/** Fetches the discovery document, then the keys. */
const fetchKeys = Effect.fnUntraced(function* (policy: string, issuer: string, send: Send) {
  const fetched = Effect.fnUntraced(function* (
    url: string,
    what: string,
    faultOf: (json: JsonObject) => string | undefined
  ) {
    const { json, status } = yield* send({ url })
    const isUsable = status === 200 && json !== undefined
    const fault = isUsable ? faultOf(json) : `status ${status}, or no JSON`
    if (fault === undefined) return json as unknown
    return yield* new IdentityUnavailable({ policy, cause: `${what}: ${fault}` })
  })
  const url = `${issuer.replace(/\/$/, "")}${discoveryPath}`
  const discovered = (yield* fetched(url, "the discovery document", (found) =>
    discoveryFault(found, issuer)
  )) as Discovered
  const fetchedAt = yield* monotonicMillis
  const keys = (yield* fetched(discovered.jwks_uri, "the key set", (found) =>
    areKeys(found["keys"]) ? undefined : "no keys"
  )) as JSONWebKeySet
  return { discovered, keys, fetchedAt }
})

const endpoints = ["jwks_uri", "authorization_endpoint", "token_endpoint", "userinfo_endpoint"]

/** Why a discovery document cannot be used. */
const discoveryFault = (found: JsonObject, issuer: string): string | undefined => {
  if (found["issuer"] !== issuer) return "another issuer"
  for (const name of endpoints) {
    if (found[name] === undefined && name !== "jwks_uri") continue
    const fault = discoveredUrlFault(found[name], issuer)
    if (fault !== undefined) return `${name} ${fault}`
  }
  return undefined
}

/** An issuer in trouble may publish no keys: then the ones before serve on. */
const areKeys = (keys: unknown): boolean =>
  Array.isArray(keys) && keys.length > 0 && keys.every(isObject)

const discoveryPath = "/.well-known/openid-configuration"
