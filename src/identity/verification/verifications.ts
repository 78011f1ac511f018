// Verifies tokens and remembers the verdicts: one verification at a time for each token, and a
// limit on failures per address. shared-verdicts.ts shares them between gateways.
import { Clock, Context, Deferred, Effect, Layer, Semaphore } from "effect"
import { type ExpiringMap, makeExpiringMap } from "#basics/expiring-map.ts"
import { textHmac } from "#basics/hmac.ts"
import { makeRate, type Rate } from "#basics/rate.ts"
import { monotonicMillis } from "#clock/monotonic.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { IdentityUnavailable, type Invalid, type Known, TooManyFailures } from "../policy.ts"
import { usableGroups, userNames } from "../principals.ts"
import { IdentitySettings } from "../settings.ts"
import { useridSecret } from "../userid-secret.ts"
import { makeSharedVerdicts, type SharedVerdicts } from "./shared-verdicts.ts"

/** About 300 bytes each. */
const knownMax = 20_000
const invalidMax = 5_000
/** How long a token that was refused is not verified again. */
const invalidMillis = 10_000
/** How long a token that was verified passes the limit on failures of its address. */
const goodMillis = 10 * 60_000
const addressesMax = 20_000
/** Verifications of one policy at once, and callers that wait for one. */
const underWayMax = 64
const waitingMax = 1_000
/** A request, its retry, and what the policy does with the response. */
const verificationTimeout = "8 seconds"

/** How one policy verifies tokens. */
export interface Verifier {
  readonly policy: string
  /**
   * The settings on which a verdict depends, such as the audience: other settings, other entries.
   */
  readonly context: string
  /** How long a verdict holds; the end of the token's validity may come earlier. */
  readonly lifetimeMillis: number
  /** Whether other gateways use the verdict: sensible where a verification costs a request. */
  readonly isShared: boolean
  readonly verify: (token: string) => Effect.Effect<Known | Invalid, IdentityUnavailable>
}

type Verdict = Known | Invalid

/** What the verifications of all policies have in common. */
interface State {
  readonly failuresMax: number
  readonly failures: Rate
  readonly warn: (fields: Readonly<Record<string, unknown>>) => Effect.Effect<void>
  readonly known: ExpiringMap<Known>
  readonly invalid: ExpiringMap<Invalid>
  /** Tokens that were valid lately: the limit on failures of an address does not refuse them. */
  readonly good: ExpiringMap<true>
  readonly shared: SharedVerdicts
  readonly keyOf: (text: string, encoding: "base64url") => string
  readonly nameOf: (user: string) => string
  readonly run: (effect: Effect.Effect<void>) => Effect.Effect<unknown>
}

type Failure = IdentityUnavailable | TooManyFailures

/** A verification, and how many callers wait for it. */
interface UnderWay {
  readonly done: Deferred.Deferred<Verdict, Failure>
  callers: number
}

/** What the verifications of one policy have in common. */
interface Pending {
  readonly verifier: Verifier
  readonly permits: Semaphore.Semaphore
  readonly underWay: Map<string, UnderWay>
  waiting: number
}

/** Verifies a token and remembers the verdict. */
const verifyOnce = Effect.fnUntraced(function* (
  { good, invalid, known, nameOf, run, shared }: State,
  { isShared, lifetimeMillis, verify }: Verifier,
  key: string,
  token: string
) {
  const began = yield* Clock.currentTimeMillis
  const found = isShared ? yield* shared.read(key, began) : undefined
  if (found !== undefined) {
    // The clock of the gateway that verified may be ahead.
    known.set(key, found.known, Math.min(found.until, began + lifetimeMillis))
    return found.known
  }
  const verdict = yield* verify(token)
  if (verdict._tag === "Invalid") {
    invalid.set(key, verdict, began + invalidMillis)
    return verdict
  }
  const groups = usableGroups(verdict.groups).map(nameOf)
  const named = { ...verdict, user: nameOf(verdict.user), groups }
  const until = Math.min(began + lifetimeMillis, named.expiresAt ?? Number.POSITIVE_INFINITY)
  known.set(key, named, until)
  good.set(key, true, began + goodMillis)
  if (isShared && until > began) yield* run(shared.write(key, { known: named, until }, began))
  return named
})

/** Starts a verification in a fiber of its own: the first request may end before it. */
const start = Effect.fnUntraced(function* (
  state: State,
  pending: Pending,
  key: string,
  token: string,
  address: string
) {
  const { permits, underWay, verifier } = pending
  const { policy } = verifier
  const now = yield* Clock.currentTimeMillis
  const done = Deferred.makeUnsafe<Verdict, Failure>()
  // Starts with its first caller: a verification without I/O may end at once.
  const started: UnderWay = { done, callers: 1 }
  underWay.set(key, started)
  const unavailable = (cause: unknown) => new IdentityUnavailable({ policy, cause })
  yield* state.run(
    // Others of this address may have failed while this one waited.
    Effect.flatMap(admit(state, key, now, address), () =>
      verifyOnce(state, verifier, key, token)
    ).pipe(
      permits.withPermits(1),
      Effect.timeout(verificationTimeout),
      Effect.catchTag("TimeoutError", (cause) => Effect.fail(unavailable(cause))),
      Effect.catchDefect((cause) => Effect.fail(unavailable(cause))),
      Effect.onExit((exit) =>
        Effect.map(monotonicMillis, (ended) => {
          underWay.delete(key)
          Deferred.doneUnsafe(done, exit)
          // Clients that left count, too: else their tokens cost requests without an end.
          const isInvalid = exit._tag === "Success" && exit.value._tag === "Invalid"
          if (isInvalid && started.callers === 0) state.failures.take(address, ended)
        })
      ),
      Effect.ignore
    )
  )
  return started
})

/** Fails for an address that has sent too many wrong credentials. Known tokens still pass. */
const admit = Effect.fnUntraced(function* (
  { failures, failuresMax, good, warn }: State,
  key: string,
  now: number,
  address: string
) {
  if (failuresMax === 0 || good.get(key, now) !== undefined) return
  const waitMillis = failures.wait(address, yield* monotonicMillis)
  if (waitMillis === 0) return
  yield* warn({ max: failuresMax })
  return yield* new TooManyFailures({ waitMillis })
})

const verdictOf = Effect.fnUntraced(function* (
  state: State,
  pending: Pending,
  token: string,
  address: string
) {
  const { context, lifetimeMillis, policy } = pending.verifier
  // A shorter lifetime takes effect at once: it shares no verdicts with a longer one.
  const key = state.keyOf([policy, lifetimeMillis, context, token].join("\n"), "base64url")
  const now = yield* Clock.currentTimeMillis
  const known = state.known.get(key, now)
  if (known !== undefined) return known
  yield* admit(state, key, now, address)
  const recent = state.invalid.get(key, now)
  if (recent !== undefined) return recent
  // Callers may leave while their verifications wait.
  if (Math.max(pending.waiting, pending.underWay.size) >= waitingMax)
    return yield* new IdentityUnavailable({ policy, cause: "too many callers wait" })
  pending.waiting += 1
  const joined = pending.underWay.get(key)
  if (joined !== undefined) joined.callers += 1
  const started = joined ?? (yield* start(state, pending, key, token, address))
  return yield* Effect.ensuring(
    Deferred.await(started.done),
    Effect.sync(() => {
      pending.waiting -= 1
      started.callers -= 1
    })
  )
})

export class Verifications extends Context.Service<
  Verifications,
  {
    /** The verdict on a token that a client of an address sends. */
    readonly make: (
      verifier: Verifier
    ) => (token: string, address: string) => Effect.Effect<Verdict, Failure>
    /** Counts credentials of an address by which no policy found a user. */
    readonly failed: (address: string) => Effect.Effect<void>
  }
>()("bellcast/identity/Verifications") {
  static readonly layer = Layer.effect(
    Verifications,
    Effect.gen(function* () {
      const { authFailuresPerAddressPerMinuteMax: failuresMax } = yield* IdentitySettings
      const secret = yield* useridSecret
      const scope = yield* Effect.scope
      const state: State = {
        failuresMax,
        failures: makeRate(Math.max(failuresMax, 1), 60_000, addressesMax),
        warn: makeRateLimitedLog(
          "an address sends too many wrong credentials " +
            "(BELLCAST_AUTH_FAILURES_PER_ADDRESS_PER_MINUTE_MAX; " +
            "behind a proxy BELLCAST_TRUSTED_PROXIES must name it)"
        ),
        known: makeExpiringMap(knownMax),
        invalid: makeExpiringMap(invalidMax),
        good: makeExpiringMap(knownMax),
        shared: yield* makeSharedVerdicts,
        keyOf: textHmac(textHmac(secret)("bellcast verification", "hex")),
        nameOf: userNames(secret),
        run: (effect) => Effect.forkIn(effect, scope)
      }
      const make = (verifier: Verifier) => {
        const permits = Semaphore.makeUnsafe(underWayMax)
        const pending: Pending = { verifier, permits, underWay: new Map(), waiting: 0 }
        return (token: string, address: string) => verdictOf(state, pending, token, address)
      }
      const failed = (address: string) =>
        Effect.map(monotonicMillis, (now) => {
          state.failures.take(address, now)
        })
      return Verifications.of({ make, failed })
    })
  )
}
