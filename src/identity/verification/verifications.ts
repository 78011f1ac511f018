// Verifies tokens and remembers the verdicts: one verification at a time for each token, verdicts
// in memory, and in the bucket `cache`, which all gateways share. failures.ts limits verifications
// per address.
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Semaphore from "effect/Semaphore"
import { LruCache } from "#basics/bounded.ts"
import { makeRate, type Rate } from "#basics/limits.ts"
import { monotonicMillis } from "#clock/clocks.ts"
import { Caches, MemoryCache } from "#memory/cache-memory.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { keys } from "#streams/buckets.ts"
import { hmacFor, useridSecret, userNames } from "../principals.ts"
import { IdentitySettings } from "../settings.ts"
import {
  type Asker,
  IdentityUnavailable,
  type Invalid,
  identificationMillis,
  type Known,
  type TooManyFailures,
  type Verdict,
  type VerifyToken
} from "../verdict.ts"
import { Failures } from "./failures.ts"

/** About 300 bytes each. */
const invalidMax = 5_000
/** How long a token that was refused is not verified again. */
const invalidMillis = 10_000
/** Verifications of one policy at once, and callers that wait for one. */
const underWayMax = 64
const waitingMax = 1_000
const addressesMax = 20_000

/** Bytes of V8's heap (measured): a verdict with its key; a name, without its characters. */
const verdictBytes = 500
const groupBytes = 32

const sharedReadTimeout = "500 millis"
const sharedWriteTimeout = "5 seconds"

/** How one policy verifies tokens. */
interface Verifier {
  readonly policy: string
  /**
   * The settings on which a verdict depends, such as the audience: other settings, other entries.
   */
  readonly context?: string
  /**
   * How long a verdict holds, but never longer than the token is valid. Without it, the setting
   * says how long.
   */
  readonly lifetimeMillis?: number
  /** Whether other gateways use the verdict: sensible where a verification costs a request. */
  readonly isShared?: boolean
  readonly verify: (token: string) => Effect.Effect<Verdict, IdentityUnavailable>
}

/** The state that the verifications of all policies share. */
interface State {
  readonly failures: Failures["Service"]
  /** Verdicts on verified tokens, until a time of the monotonic clock. */
  readonly known: MemoryCache<Known>
  readonly invalid: LruCache<Invalid>
  readonly shared: SharedVerdicts
  /** Verifications per address that ended without a verdict. */
  readonly outages: Rate
  readonly keyOf: (...texts: ReadonlyArray<string | number>) => string
  readonly nameOf: (user: string) => string
  readonly run: (effect: Effect.Effect<void>) => Effect.Effect<unknown>
}

type Failure = IdentityUnavailable | TooManyFailures

/** A verification, and how many callers wait for it. */
interface UnderWay {
  readonly done: Deferred.Deferred<Verdict, Failure>
  callers: number
}

/** The state that the verifications of one policy share. */
interface Pending {
  readonly verifier: Required<Verifier>
  readonly permits: Semaphore.Semaphore
  readonly underWay: Map<string, UnderWay>
  waiting: number
  /** Whether the last verification ended without a verdict: the server does not respond. */
  isAway: boolean
}

export class Verifications extends Context.Service<
  Verifications,
  {
    /** The verdict on a token that a client of an address sends. */
    readonly make: (verifier: Verifier) => VerifyToken
  }
>()("bellcast/identity/Verifications") {
  static readonly layer = Layer.effect(
    Verifications,
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      const { authFailuresPerAddressPerMinuteMax: max, authVerificationTtlSeconds } =
        yield* IdentitySettings
      const lifetimeMillis = authVerificationTtlSeconds * 1000
      const state: State = {
        failures: yield* Failures,
        known: new MemoryCache((yield* Caches).share("logins"), 1),
        invalid: new LruCache(invalidMax),
        shared: yield* makeSharedVerdicts,
        outages: makeRate(max, 60_000, addressesMax),
        keyOf: yield* credentialKeys,
        nameOf: userNames(yield* useridSecret),
        run: (effect) => Effect.forkIn(effect, scope)
      }
      const make = (verifier: Verifier) => {
        const pending: Pending = {
          verifier: { context: "", lifetimeMillis, isShared: false, ...verifier },
          permits: Semaphore.makeUnsafe(underWayMax),
          underWay: new Map(),
          waiting: 0,
          isAway: false
        }
        return (token: string, asker: Asker) => verdictOf(state, pending, token, asker)
      }
      return Verifications.of({ make })
    })
  )
}

const verdictOf = Effect.fnUntraced(function* (
  state: State,
  pending: Pending,
  token: string,
  { address, patienceMillis }: Asker
) {
  const { context, lifetimeMillis, policy } = pending.verifier
  // A shorter lifetime takes effect at once: it shares no verdicts with a longer one.
  const key = state.keyOf(policy, lifetimeMillis, context, token)
  const now = yield* monotonicMillis
  const known = state.known.get(key, now)
  const expiresAt = known?.expiresAt ?? Number.POSITIVE_INFINITY
  if (known !== undefined && expiresAt > (yield* Clock.currentTimeMillis)) return known
  yield* state.failures.admit(key, address)
  const recent = state.invalid.get(key, now)
  if (recent !== undefined) return recent
  // Callers may leave while their verifications wait.
  const unavailable = (cause: string) => new IdentityUnavailable({ policy, cause })
  if (Math.max(pending.waiting, pending.underWay.size) >= waitingMax)
    return yield* unavailable("too many callers wait")
  // A server that is away is no failure of its users, but gets few tokens of each address.
  if (pending.isAway && state.outages.wait(address, now) > 0)
    return yield* unavailable("the server does not respond, and was asked often enough")
  pending.waiting += 1
  const joined = pending.underWay.get(key)
  if (joined !== undefined) joined.callers += 1
  const started = joined ?? (yield* start(state, pending, key, token, address, now))
  return yield* Deferred.await(started.done).pipe(
    Effect.timeoutOrElse({
      duration: patienceMillis,
      orElse: () => Effect.fail(unavailable("not verified in time"))
    }),
    Effect.ensuring(
      Effect.sync(() => {
        pending.waiting -= 1
        started.callers -= 1
      })
    )
  )
})

/** Starts a verification in a fiber of its own: the first request may end before it. */
const start = Effect.fnUntraced(function* (
  state: State,
  pending: Pending,
  key: string,
  token: string,
  address: string,
  now: number
) {
  const { permits, underWay, verifier } = pending
  const { policy } = verifier
  const done = Deferred.makeUnsafe<Verdict, Failure>()
  // Starts with its first caller: a verification without I/O may end at once.
  const started: UnderWay = { done, callers: 1 }
  underWay.set(key, started)
  const unavailable = (cause: unknown) => new IdentityUnavailable({ policy, cause })
  yield* state.run(
    // Other tokens of this address may have failed while this one waited.
    Effect.flatMap(state.failures.admit(key, address), () =>
      verifyOnce(state, verifier, key, token)
    ).pipe(
      permits.withPermits(1),
      Effect.timeout(identificationMillis),
      Effect.catchTag("TimeoutError", (cause) => Effect.fail(unavailable(cause))),
      Effect.catchDefect((cause) => Effect.fail(unavailable(cause))),
      Effect.onExit((exit) => {
        underWay.delete(key)
        // Before the callers go on: they leave at once, and then each failure would count twice.
        const isLeft = started.callers === 0
        Deferred.doneUnsafe(done, exit)
        // Clients that left count, too: else their tokens cost requests without an end.
        const isInvalid = exit._tag === "Success" && exit.value._tag === "Invalid"
        noteOutage(state, pending, exit, address, now)
        return isInvalid && isLeft ? state.failures.count(address) : Effect.void
      }),
      Effect.ignore
    )
  )
  return started
})

/** Counts a verification that ended without a verdict, and notes whether the server is away. */
const noteOutage = (
  { outages }: State,
  pending: Pending,
  exit: Exit.Exit<Verdict, Failure>,
  address: string,
  now: number
): void => {
  const failure = Exit.isFailure(exit)
    ? Option.getOrUndefined(Exit.findErrorOption(exit))
    : undefined
  if (failure?._tag === "TooManyFailures") return
  pending.isAway = failure !== undefined
  if (pending.isAway) outages.take(address, now)
}

/**
 * Verifies a token and remembers the verdict. Its lifetime is measured by the monotonic clock: a
 * revoked token must not work for longer because a server's clock was set back.
 */
const verifyOnce = Effect.fnUntraced(function* (
  { failures, invalid, known, nameOf, run, shared }: State,
  { isShared, lifetimeMillis, verify }: Required<Verifier>,
  key: string,
  token: string
) {
  const began = yield* Clock.currentTimeMillis
  const from = yield* monotonicMillis
  const found = isShared ? yield* shared.read(key, began) : undefined
  if (found !== undefined) {
    // The clock of the gateway that verified may be ahead.
    const until = from + Math.min(found.until - began, lifetimeMillis)
    known.set(key, found.known, bytesOf(found.known), until)
    return found.known
  }
  const verdict = yield* verify(token)
  if (verdict._tag === "Invalid") {
    if (!verdict.isUnknown) invalid.set(key, verdict, from + invalidMillis)
    return verdict
  }
  const groups = verdict.groups.map(nameOf)
  const named = { ...verdict, user: nameOf(verdict.user), groups }
  const until = Math.min(began + lifetimeMillis, named.expiresAt ?? Number.POSITIVE_INFINITY)
  known.set(key, named, bytesOf(named), from + until - began)
  yield* failures.good(key)
  if (isShared && until > began) yield* run(shared.write(key, { known: named, until }, began))
  return named
})

const bytesOf = ({ groups, rights, user }: Known): number =>
  [user, ...groups, ...(rights?.channels ?? [])].reduce(
    (sum, text) => sum + groupBytes + text.length,
    verdictBytes
  )

interface SharedVerdict {
  readonly known: Known
  /** Milliseconds since the epoch. */
  readonly until: number
}

type SharedVerdicts = Effect.Success<typeof makeSharedVerdicts>

/**
 * Verdicts in the bucket `cache`, which all gateways share. A failure of the bucket never fails a
 * request: the token is verified instead.
 */
const makeSharedVerdicts = Effect.map(Buckets, (buckets) => ({
  /** A verdict that holds at `now`. */
  read: (key: string, now: number): Effect.Effect<SharedVerdict | undefined> =>
    buckets.get("cache", keys.verification(key)).pipe(
      Effect.timeout(sharedReadTimeout),
      Effect.map((entry) => (entry && entry.value.until > now ? entry.value : undefined)),
      Effect.orElseSucceed(() => undefined)
    ),
  write: (key: string, { known, until }: SharedVerdict, now: number) =>
    buckets
      .put("cache", keys.verification(key), { v: 1, known, until }, 0, {
        ttlSeconds: Math.ceil((until - now) / 1000)
      })
      .pipe(Effect.timeout(sharedWriteTimeout), Effect.ignore)
}))

/**
 * A function from texts to one key, 43 characters, under which verdicts are remembered: no token is
 * in memory or in NATS longer than its request. No text may hold a line feed but the last.
 */
export const credentialKeys = Effect.map(useridSecret, (secret) => {
  const hmac = hmacFor(secret, "bellcast verification")
  return (...texts: ReadonlyArray<string | number>): string => hmac(texts.join("\n"), "base64url")
})
