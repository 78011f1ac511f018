// The metrics of this process, the backlog and the space of the streams, as Prometheus reads them.
import { Clock, Effect } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { Backlog, type Waiting } from "#nats/watch/backlog.ts"
import { Space } from "#nats/watch/space.ts"
import { topology } from "#streams/index.ts"
import { type BacklogState, makeBacklogMetrics, makeRoomMetrics } from "#telemetry/nats-metrics.ts"

/** The Content-Type of the text. */
export const textFormat = "text/plain; version=0.0.4; charset=utf-8"

const showState = makeBacklogMetrics()
const showRooms = makeRoomMetrics()

/**
 * When the broadcast of the oldest waiting message was accepted, in milliseconds since the epoch.
 */
const acceptedAtOf = ({ oldest }: Waiting): number => {
  if (oldest === undefined) return Number.POSITIVE_INFINITY
  return oldest.message.type === "shard/1" || oldest.message.type === "retry/1"
    ? oldest.message.acceptedAt
    : oldest.at
}

/** Until NATS was read for the first time. */
const nothing: BacklogState = {
  oldestAt: undefined,
  jobs: topology.streams.flatMap(({ consumers }) =>
    Object.values(consumers).map(({ name }) => ({ consumer: name, messages: 0 }))
  ),
  appended: []
}
let latest = nothing

const showBacklog = Effect.gen(function* () {
  const known = yield* (yield* Backlog).snapshot.pipe(
    Effect.map(({ appended, waiting }) => {
      const oldestAt = Math.min(...waiting.map(acceptedAtOf))
      latest = {
        oldestAt: Number.isFinite(oldestAt) ? oldestAt : undefined,
        jobs: waiting,
        appended
      }
      return true
    }),
    Effect.orElseSucceed(() => false)
  )
  showState(latest, known, yield* Clock.currentTimeMillis)
})

/** All metrics. What NATS does not say within 2 s is shown as it was last. */
export const metricsText: Effect.Effect<string, never, Backlog | Space> = Effect.gen(function* () {
  yield* showBacklog
  const { isFull, rooms } = yield* Space
  showRooms(rooms().map((room) => ({ ...room, full: isFull([room.stream]) })))
  return yield* PrometheusMetrics.format()
})
