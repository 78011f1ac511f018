// The metrics of this process, the backlog and the space of the streams, as Prometheus reads them.
import { Clock, Effect } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { Backlog, type Waiting } from "#nats/admin/backlog.ts"
import { Space } from "#nats/admin/space.ts"
import { makeBacklogMetrics, makeRoomMetrics } from "#telemetry/nats-metrics.ts"

/** The Content-Type of the text. */
export const textFormat = "text/plain; version=0.0.4; charset=utf-8"

const backlogMetrics = makeBacklogMetrics()
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

const showBacklog = Effect.gen(function* () {
  const { appended, waiting } = yield* (yield* Backlog).snapshot
  const oldestAt = Math.min(...waiting.map(acceptedAtOf))
  const oldestPushSeconds = Math.max(0, (yield* Clock.currentTimeMillis) - oldestAt) / 1000
  backlogMetrics.show({ oldestPushSeconds, jobs: waiting, appended })
}).pipe(Effect.catch(() => Effect.sync(backlogMetrics.unknown)))

/** All metrics. What NATS cannot say within 2 s is shown as unknown. */
export const metricsText: Effect.Effect<string, never, Backlog | Space> = Effect.gen(function* () {
  yield* showBacklog
  const { isFull, rooms } = yield* Space
  showRooms(rooms().map((room) => ({ ...room, full: isFull([room.stream]) })))
  return yield* PrometheusMetrics.format()
})
