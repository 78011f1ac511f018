// A log whose history ends now: everything that nothing rests on is deleted.
import { Effect, Layer, Schedule } from "effect"
import { HistoryDays, readHistoryPlace } from "#history/place.ts"
import { PartMax } from "#history/subject.ts"
import { streamState } from "#nats/admin/maintenance.ts"
import { provision } from "#nats/admin/provision.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { EndedMillis } from "#projection/forget.ts"
import { projectionLayer } from "#projection/projector.ts"
import { verify } from "#rebuild/verify.ts"
import { followers } from "#streams/followers.ts"
import { streams } from "#streams/index.ts"
import { quiet } from "./history.ts"

/** Every message is older than the history, and 100 of a subject are looked at together. */
export const noDays = Layer.mergeAll(
  Layer.succeed(HistoryDays, { usual: 0, shortest: 0 }),
  Layer.succeed(PartMax, 100),
  Layer.succeed(EndedMillis, 0)
)

/** The differences between buckets and streams. */
export const differencesAt = (url: string) =>
  Effect.runPromise(
    Effect.map(verify(), ({ differences }) => differences).pipe(
      Effect.provide(Layer.mergeAll(natsLayer({ url, name: "test" }), noDays, quiet))
    )
  )

/**
 * Runs a projector that deletes old messages, until it has looked at LOG up to its last message or
 * has deleted so many: then it is cut off. Returns how many it deleted.
 */
export const trimAt = async (url: string, deletedMax = Number.POSITIVE_INFINITY) => {
  let deleted = 0
  const cutOff = Layer.effect(
    EventLog,
    Effect.map(EventLog, (own) =>
      EventLog.of({
        ...own,
        remove: (seq) =>
          Effect.suspend(() => (deleted++ < deletedMax ? own.remove(seq) : Effect.never))
      })
    )
  ).pipe(
    Layer.provideMerge(natsLayer({ url, name: "history" })),
    Layer.provideMerge(Layer.mergeAll(noDays, quiet))
  )
  const run = Effect.gen(function* () {
    const { last: lastOn } = yield* EventLog
    const ends = yield* Effect.forEach(followers.projector.filters, (each) => lastOn("log", each))
    const last = Math.max(...ends.map((each) => each?.seq ?? 0))
    const isDone = Effect.map(
      readHistoryPlace,
      ({ deleting, historyUpTo }) =>
        deleted > deletedMax || (historyUpTo >= last - 1 && deleting.length === 0)
    )
    yield* isDone.pipe(
      Effect.repeat({ until: (done) => done, schedule: Schedule.spaced("20 millis") }),
      Effect.timeout("60 seconds")
    )
  })
  await Effect.runPromise(run.pipe(Effect.provide(projectorOn(cutOff))))
  return Math.min(deleted, deletedMax)
}

const made = Layer.effectDiscard(provision(1))
const projectorOn = <A, E, R>(nats: Layer.Layer<A, E, R>) =>
  projectionLayer.pipe(Layer.provide(made), Layer.provideMerge(nats))

/**
 * Runs a projector whose history is long, but where LOG is nearly full, until it has looked once.
 * Resolves with how many messages LOG has then.
 */
export const trimNearlyFullAt = (url: string): Promise<number> => {
  const nats = Layer.mergeAll(
    natsLayer({ url, name: "history" }),
    Layer.succeed(HistoryDays, { usual: 36_500, shortest: 0 }),
    quiet
  )
  const messages = Effect.map(streamState(streams.log), (state) => state?.messages ?? 0)
  const isStill = Effect.gen(function* () {
    const before = yield* messages
    yield* Effect.sleep("2 seconds")
    return (yield* messages) === before
  })
  return Effect.andThen(Effect.repeat(isStill, { until: Boolean }), messages).pipe(
    Effect.timeout("60 seconds"),
    Effect.provide(projectorOn(nats)),
    Effect.runPromise
  )
}
