// Pauses broadcasts of which too many pushes failed. Those for which LOG has no room wait in
// memory.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { originOf, pauseFailed } from "#broadcasts/state.ts"
import type { Failures } from "#domain/progress.ts"
import type { Buckets } from "#nats/kv/bucket.ts"
import type { EventLog } from "#nats/stream/event-log.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"

interface Due {
  readonly failures: Failures
  /** Sequence of the outcome by which the share was reached. */
  readonly seq: number
}

const warn = makeRateLimitedLog("broadcasts of which pushes fail cannot be paused yet")

export const makePauses = Effect.gen(function* () {
  const context = yield* Effect.context<EventLog | Buckets>()
  const due = new Map<number, Due>()

  const pause = Effect.fnUntraced(
    function* (broadcast: number, failures: Failures) {
      const origin = yield* originOf(broadcast)
      const at = yield* Clock.currentTimeMillis
      if (origin !== undefined) yield* pauseFailed(origin, failures, at)
      due.delete(broadcast)
    },
    Effect.catchTag("AppendConflict", () => Effect.void),
    (effect, broadcast) =>
      Effect.catchReason(effect, "NatsUnavailable", "NoRoom", () => warn({ broadcast }))
  )

  return {
    add: (broadcast: number, failures: Failures, seq: number): void => {
      due.set(broadcast, { failures, seq })
    },
    /** Stores what is due. What has no room, or changes all the time, is tried again. */
    store: Effect.suspend(() =>
      Effect.forEach([...due], ([broadcast, { failures }]) => pause(broadcast, failures), {
        discard: true
      })
    ).pipe(Effect.provideContext(context)),
    /** Sequence of the first message whose pause is not stored, or Infinity. */
    waitingSince: () => Math.min(...[...due.values()].map(({ seq }) => seq))
  }
})
