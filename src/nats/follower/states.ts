// Follows the changes of the states of broadcasts in LOG, so that planner and workers obey them
// without a request for each job or push: within milliseconds, while NATS responds.
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import { streams } from "#streams/index.ts"
import { filters } from "#streams/subjects.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { Nats } from "../connection/connection.ts"
import { unavailable } from "../connection/errors.ts"
import { EventLog } from "../stream/event-log.ts"
import type { Stored } from "../stream/stored.ts"
import { arrival, openInbox, takeBatch } from "./inbox.ts"

const again = Schedule.spaced("250 millis")

export class States extends Context.Service<
  States,
  {
    /** Whether a broadcast was cancelled within the time for which WORK has jobs of it. */
    readonly isCancelled: (broadcast: number) => boolean
    /** Returns when every change that LOG had at the start of this process is known. */
    readonly known: Effect.Effect<void>
  }
>()("bellcast/nats/States") {
  static readonly layer = Layer.effect(
    States,
    Effect.gen(function* () {
      const cancelled = new Map<number, number>()
      const latch = Latch.makeUnsafe()
      const warn = makeRateLimitedLog("states of broadcasts cannot be followed", Effect.logError)
      yield* follow(cancelled, latch).pipe(
        Effect.tapError(({ cause }) => warn({ reason: String(cause) })),
        Effect.retry(again),
        Effect.forkScoped
      )
      return States.of({
        isCancelled: (broadcast) => cancelled.has(broadcast),
        known: latch.await
      })
    })
  )
}

/** By broadcast, when it was cancelled: in order, so that the oldest are first. */
type Cancelled = Map<number, number>

const add = (cancelled: Cancelled, { at, message }: Stored, now: number): void => {
  const since = now - streams.work.maxAgeMillis
  if (message.type === "broadcast.cancelled/1" && at >= since) cancelled.set(message.broadcast, at)
  for (const [broadcast, then] of cancelled) {
    if (then >= since) break
    cancelled.delete(broadcast)
  }
}

/** Reads all changes, then each that comes. Fails when some may be missing. */
const follow = Effect.fnUntraced(function* (cancelled: Cancelled, latch: Latch.Latch) {
  const { js } = yield* Nats
  let from = 0
  const began = yield* Clock.currentTimeMillis
  yield* (yield* EventLog).replay("log", [filters.states], (stored) => {
    from = stored.seq
    add(cancelled, stored, began)
  })
  yield* latch.open
  const followed = { stream: "log", filters: [filters.states] } as const
  const inbox = yield* openInbox(js, "states of broadcasts", followed, from)
  while (!inbox.ended) {
    yield* arrival(inbox)
    const now = yield* Clock.currentTimeMillis
    while (inbox.waiting.length > 0)
      for (const stored of takeBatch(inbox)) add(cancelled, stored, now)
  }
  return yield* unavailable("follow states")(new Error("the stream ended"))
}, Effect.scoped)
