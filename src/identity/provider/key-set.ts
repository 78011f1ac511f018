// The public keys of an OpenID Connect issuer: found by its discovery document, fetched at most
// once per cooldown, and used for a stated time while the issuer is away.
import { Deferred, Effect, type Scope } from "effect"
import { monotonicMillis } from "#clock/monotonic.ts"
import { IdentityUnavailable } from "../policy.ts"
import type { ProviderResponse, Send } from "./client.ts"
import { discoveredUrlFault } from "./url.ts"

/** Keys are fetched again after this time, and for a key id that they lack. */
const freshMillis = 600_000
/** The shortest time between two fetches, however many tokens name unknown keys. */
const cooldownMillis = 10_000
/** The same while there are no keys at all, so that a start heals soon. */
const firstCooldownMillis = 2_000
/**
 * How long tokens with unknown keys wait for a fetch. Else made-up keys would take all places of
 * the tokens under verification while the issuer does not respond.
 */
const patienceMillis = 2_000
/** How long keys are used while the issuer does not respond. */
export const staleMillis = 24 * 3_600_000

export interface JwkSet {
  readonly keys: ReadonlyArray<Readonly<Record<string, unknown>>>
}

/** What an issuer says of itself (OpenID Connect Discovery section 3). */
export interface Discovered {
  readonly issuer: string
  readonly jwks_uri: string
  readonly authorization_endpoint?: string
  readonly token_endpoint?: string
  readonly userinfo_endpoint?: string
  readonly id_token_signing_alg_values_supported?: unknown
  /** Of Portier: a login may choose the algorithm. */
  readonly accepts_id_token_signing_alg_query_param?: unknown
}

export interface IssuerKeys {
  readonly discovered: Discovered
  readonly keys: JwkSet
  /** By the monotonic clock. */
  readonly fetchedAt: number
}

export interface KeySet {
  /** The keys, fetched if there are none that may be used. */
  readonly current: Effect.Effect<IssuerKeys, IdentityUnavailable>
  /** The keys after another fetch, for a token whose key is unknown; at most one per cooldown. */
  readonly refreshed: Effect.Effect<IssuerKeys, IdentityUnavailable>
  /** Whether the issuer responds, by a fetch at most once per cooldown. */
  readonly isUp: Effect.Effect<boolean>
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null

const discoveredOf = ({ json, status }: ProviderResponse, issuer: string): Discovered | string => {
  if (status !== 200 || !isObject(json)) return `the discovery document has status ${status}`
  if (json["issuer"] !== issuer) return "the discovery document names another issuer"
  const urls = ["jwks_uri", "authorization_endpoint", "token_endpoint", "userinfo_endpoint"]
  for (const name of urls) {
    if (json[name] === undefined && name !== "jwks_uri") continue
    const fault = discoveredUrlFault(json[name], issuer)
    if (fault !== undefined) return `${name} of the discovery document ${fault}`
  }
  return json as unknown as Discovered
}

/** An issuer in trouble may publish no keys: then the ones before serve on. */
const areKeys = (keys: unknown): boolean =>
  Array.isArray(keys) && keys.length > 0 && keys.every(isObject)

const jwksOf = ({ json, status }: ProviderResponse): JwkSet | string =>
  status === 200 && isObject(json) && areKeys(json["keys"])
    ? (json as unknown as JwkSet)
    : `the key set has status ${status}, or no keys`

const discoveryPath = "/.well-known/openid-configuration"

/** Fetches the discovery document, then the keys. */
const fetchKeys = Effect.fnUntraced(function* (policy: string, issuer: string, send: Send) {
  const usable = <A>(read: A | string) =>
    typeof read === "string"
      ? Effect.fail(new IdentityUnavailable({ policy, cause: read }))
      : Effect.succeed(read)
  const url = `${issuer.replace(/\/$/, "")}${discoveryPath}`
  const discovered = yield* usable(discoveredOf(yield* send({ method: "GET", url }), issuer))
  const keys = yield* usable(jwksOf(yield* send({ method: "GET", url: discovered.jwks_uri })))
  return { discovered, keys, fetchedAt: yield* monotonicMillis }
})

type Fetch = Effect.Effect<IssuerKeys, IdentityUnavailable>

interface State {
  readonly policy: string
  readonly fetch: Fetch
  readonly scope: Scope.Scope
  latest: IssuerKeys | undefined
  /** When the last fetch began, by the monotonic clock. */
  triedAt: number
  /** Why the last fetch failed; undefined: it did not. */
  failure: IdentityUnavailable | undefined
  running: Deferred.Deferred<IssuerKeys, IdentityUnavailable> | undefined
}

/** Joins the running fetch or starts one, in a fiber of its own. */
const fetching = Effect.fnUntraced(function* (state: State, now: number) {
  if (state.running !== undefined) return state.running
  const done = Deferred.makeUnsafe<IssuerKeys, IdentityUnavailable>()
  state.running = done
  state.triedAt = now
  yield* state.fetch.pipe(
    Effect.tap((fetched) =>
      Effect.sync(() => {
        state.latest = fetched
      })
    ),
    Effect.tapError((error) => Effect.logError("the keys of an issuer cannot be fetched", error)),
    Effect.onExit((exit) =>
      Effect.sync(() => {
        state.running = undefined
        state.failure = exit._tag === "Success" ? undefined : failureOf(exit.cause)
        Deferred.doneUnsafe(done, exit)
      })
    ),
    Effect.ignore,
    Effect.forkIn(state.scope)
  )
  return done
})

const failureOf = (cause: { readonly reasons: ReadonlyArray<unknown> }) => {
  const [reason] = cause.reasons as ReadonlyArray<{ readonly error?: unknown }>
  return reason?.error instanceof IdentityUnavailable ? reason.error : undefined
}

const usableAt = ({ latest }: State, now: number): IssuerKeys | undefined =>
  latest !== undefined && now - latest.fetchedAt < staleMillis ? latest : undefined

/** Fetches unless a fetch began within the cooldown; then returns what there is. */
const refresh = Effect.fnUntraced(function* (state: State) {
  const now = yield* monotonicMillis
  const usable = usableAt(state, now)
  const cooldown = usable === undefined ? firstCooldownMillis : cooldownMillis
  const mayFetch = state.running !== undefined || now - state.triedAt >= cooldown
  if (mayFetch) {
    const fetched = Effect.flatMap(fetching(state, now), Deferred.await)
    if (usable === undefined) return yield* fetched
    const patience = Math.max(0, (state.running ? state.triedAt : now) + patienceMillis - now)
    return yield* Effect.orElseSucceed(Effect.timeout(fetched, patience), () => usable)
  }
  if (usable !== undefined) return usable
  return yield* state.failure ?? new IdentityUnavailable({ policy: state.policy, cause: "no keys" })
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

/**
 * Fails while the issuer does not respond: a key that its old keys lack may be a new one, so its
 * tokens are not invalid.
 */
const refreshedOf = Effect.fnUntraced(function* (state: State) {
  const keys = yield* refresh(state)
  if (state.failure !== undefined) return yield* state.failure
  if (state.running === undefined) return keys
  return yield* new IdentityUnavailable({ policy: state.policy, cause: "the issuer is slow" })
})

/** The keys of an issuer. The first fetch is made by the first token: a start needs no issuer. */
export const makeKeySet = Effect.fnUntraced(function* (policy: string, issuer: string, send: Send) {
  const scope = yield* Effect.scope
  const fetch = fetchKeys(policy, issuer, send)
  const triedAt = Number.NEGATIVE_INFINITY
  const state: State = {
    policy,
    fetch,
    scope,
    latest: undefined,
    triedAt,
    failure: undefined,
    running: undefined
  }
  const isUp = refresh(state).pipe(
    Effect.map(() => state.failure === undefined),
    Effect.orElseSucceed(() => false)
  )
  return { current: currentOf(state), refreshed: refreshedOf(state), isUp } satisfies KeySet
})
