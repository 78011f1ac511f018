// Looks every two seconds, at rest every three, whether the streams, buckets and durable consumers
// are as declared, and repairs what somebody deleted, paused or changed while the service runs. A
// stream or bucket that held data is never made again: an empty one would look as if there had been
// no data.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { bucketStream } from "#streams/buckets.ts"
import { allStreams, consumers, streamNames, streams } from "#streams/index.ts"
import { showConsumers } from "#telemetry/nats-metrics.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { ensureCache } from "../admin/provision.ts"
import type { Nats } from "../connection/connection.ts"
import { type NatsUnavailable, unavailable } from "../connection/errors.ts"
import type { Followers } from "../follower/follower.ts"
import type { Watermark } from "../follower/watermark.ts"
import type { Buckets } from "../kv/bucket.ts"
import { type ConsumerInCare, careFor, lookAt, type Trouble } from "./consumers.ts"
import { type Look, StreamWatch } from "./streams.ts"

const cache = bucketStream("cache")
/** Consumers are looked at every two seconds at most, with a look at the streams. */
const everyMillis = 2_000
/** A timer may be early by as much. */
const earlyMillisMax = 500

export interface ConsumerHealth {
  readonly stream: string
  readonly consumer: string
  /** What is wrong and was not repaired; undefined: nothing. */
  readonly trouble: Trouble | undefined
  /** Messages that were not delivered to a worker yet. */
  readonly pending: number
  /** Set: NATS gives out no more, because so many messages are not acknowledged. */
  readonly cappedAt: number | undefined
}

export interface UpkeepState {
  /** False: NATS could not be read at the last look. The rest is of an earlier look. */
  readonly known: boolean
  readonly consumers: ReadonlyArray<ConsumerHealth>
  /** Streams, and streams behind buckets, that are gone with what they held. */
  readonly missing: ReadonlyArray<string>
}

export class Upkeep extends Context.Service<
  Upkeep,
  {
    /** As of the last look, at most a few seconds ago. */
    readonly state: () => UpkeepState
    /** Looks and repairs now. */
    readonly look: Effect.Effect<UpkeepState, NatsUnavailable>
  }
>()("bellcast/nats/Upkeep") {
  /** Needs what `provision` makes: the first look reports what is missing. */
  static readonly layer = Layer.effect(
    Upkeep,
    Effect.gen(function* () {
      const services = yield* Effect.context<Nats | Buckets | Followers | Watermark>()
      const watch = yield* StreamWatch
      const inCare = consumers.map(careFor)
      let state: UpkeepState = { known: false, consumers: [], missing: [] }
      const care = Effect.fnUntraced(
        function* (look: Look) {
          const missing = yield* missingOf(look)
          yield* Effect.forEach(
            inCare,
            (each) => {
              const stream = look.streams.get(each.stream)
              return stream === undefined ? Effect.void : lookAt(each, stream)
            },
            { concurrency: "unbounded", discard: true }
          )
          state = {
            known: true,
            consumers: inCare.map((each) => healthOf(each, missing)),
            missing
          }
          return state
        },
        Effect.mapError(unavailable("upkeep")),
        Effect.provide(services)
      )
      const unknown = Effect.sync(() => {
        state = { ...state, known: false }
      })
      let lookedAt = Number.NEGATIVE_INFINITY
      yield* watch.tell((look) => {
        const isEarly = look !== undefined && look.began - lookedAt < everyMillis - earlyMillisMax
        if (isEarly) return Effect.void
        if (look !== undefined) lookedAt = look.began
        const told = look === undefined ? unknown : care(look)
        // Others log that the server is unavailable.
        return Effect.andThen(
          Effect.catch(told, () => unknown),
          Effect.sync(() => showConsumers(state.consumers))
        )
      })
      return Upkeep.of({ state: () => state, look: Effect.flatMap(watch.look, care) })
    })
  )
}

const healthOf = (
  { cappedAt, pending, spec, stream, trouble }: ConsumerInCare,
  missing: ReadonlyArray<string>
): ConsumerHealth => ({
  stream,
  consumer: spec.name,
  trouble: missing.includes(stream) ? "missing" : trouble,
  pending,
  cappedAt
})

const streamLost = makeRateLimitedLog(
  "a stream is gone, and Bellcast does not make it again, as it would be empty: stop every " +
    "process, restore the stream from its backup, run `bellcast rebuild`, start again",
  Effect.logError
)
const cacheLost = makeRateLimitedLog("the bucket of leases and page tokens was deleted: made again")
const bucketLost = makeRateLimitedLog(
  "a bucket is gone: stop the processes that run projection or tally, run `bellcast rebuild`, " +
    "start them again",
  Effect.logError
)

/** The streams that are missing. The bucket `cache` is made again: it holds nothing to lose. */
const missingOf = Effect.fnUntraced(function* (look: Look) {
  const log = look.streams.get(streams.log.name)
  if (!look.streams.has(cache) && log !== undefined) {
    yield* ensureCache(log.config.num_replicas)
    yield* cacheLost({ bucket: cache })
  }
  const missing = streamNames.filter((name) => !look.streams.has(name) && name !== cache)
  const own = allStreams.map(({ name }) => name)
  const lost = missing.filter((name) => own.includes(name))
  const lostBuckets = missing.filter((name) => !own.includes(name))
  if (lost.length > 0) yield* streamLost({ streams: lost.join(",") })
  if (lostBuckets.length > 0) yield* bucketLost({ buckets: lostBuckets.join(",") })
  return missing
})
