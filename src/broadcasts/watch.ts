// Follows broadcasts while somebody watches them. All watchers of a process share one poll.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { isFinal, type Origin, type Standing, standingsNearby } from "./state.ts"

/** The time between two reads of watched broadcasts. Their counts are stored once a second. */
const pollMillis = 250
/** Broadcasts that one request reads. */
const readMax = 256

interface Waiter {
  readonly origin: Origin
  readonly known: Standing
  readonly resume: (found: Effect.Effect<Standing>) => void
}

export class BroadcastWatch extends Context.Service<
  BroadcastWatch,
  {
    /** The next standing of a broadcast after this one. Waits, also while NATS is away. */
    readonly next: (origin: Origin, known: Standing) => Effect.Effect<Standing>
  }
>()("bellcast/broadcasts/BroadcastWatch") {
  static readonly layer = Layer.effect(
    BroadcastWatch,
    Effect.gen(function* () {
      const waiters = new Set<Waiter>()
      const hasWaiters = Latch.makeUnsafe()
      const warn = makeRateLimitedLog("watched broadcasts cannot be read")
      yield* Effect.sleep(pollMillis).pipe(
        Effect.andThen(Effect.suspend(() => poll(waiters))),
        Effect.catchTag("NatsUnavailable", (err) => warn({ err })),
        Effect.andThen(
          Effect.sync(() => {
            if (waiters.size === 0) hasWaiters.closeUnsafe()
          })
        ),
        hasWaiters.whenOpen,
        Effect.forever,
        Effect.forkScoped
      )
      return BroadcastWatch.of({
        next: (origin, known) =>
          Effect.callback((resume) => {
            const waiter = { origin, known, resume }
            waiters.add(waiter)
            hasWaiters.openUnsafe()
            return Effect.sync(() => waiters.delete(waiter))
          })
      })
    })
  )
}

const factSeq = ({ change }: Standing): number => change?.seq ?? 0
const countSeq = ({ progress }: Standing): number => progress?.seq ?? 0

/** Whether a standing follows another one. A replica may be behind the one that was read before. */
export const follows = (found: Standing, known: Standing): boolean =>
  factSeq(found) >= factSeq(known) &&
  countSeq(found) >= countSeq(known) &&
  (factSeq(found) > factSeq(known) ||
    countSeq(found) > countSeq(known) ||
    found.state !== known.state ||
    isFinal(found) !== isFinal(known))

/** Reads each watched broadcast once, and wakes the waiters for which it changed. */
const poll = Effect.fnUntraced(function* (waiters: Set<Waiter>) {
  const origins = [...new Map([...waiters].map(({ origin }) => [origin.stored.seq, origin]))]
  for (let i = 0; i < origins.length; i += readMax) {
    const part = origins.slice(i, i + readMax)
    const standings = yield* standingsNearby(part.map(([, origin]) => origin))
    const found = new Map(part.map(([seq], place) => [seq, standings[place]!]))
    for (const waiter of waiters) {
      const standing = found.get(waiter.origin.stored.seq)
      if (standing === undefined || !follows(standing, waiter.known)) continue
      waiters.delete(waiter)
      waiter.resume(Effect.succeed(standing))
    }
  }
})

/**
 * Passes each standing of a broadcast to `each`, from `first` on, and returns the last one. Slow
 * readers miss those in between.
 */
export const followBroadcast = Effect.fnUntraced(function* <E, R>(
  origin: Origin,
  first: Standing,
  each: (standing: Standing) => Effect.Effect<void, E, R>
) {
  const { next } = yield* BroadcastWatch
  let standing = first
  yield* each(standing)
  while (!isFinal(standing)) {
    standing = yield* next(origin, standing)
    yield* each(standing)
  }
  return standing
})
