// GET /__metrics__: the metrics of this process and the backlog of the streams, for Prometheus.
import { Clock, Effect } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { Backlog, type Waiting } from "#nats/admin/backlog.ts"
import { Space } from "#nats/admin/space.ts"
import { makeBacklogMetrics, makeRoomMetrics } from "#telemetry/nats-metrics.ts"
import type { Operation } from "../operation.ts"

const textFormat = "text/plain; version=0.0.4; charset=utf-8"

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

export const metricsGet: Operation<void> = {
  access: "anyone",
  read: () => Effect.void,
  run: Effect.fnUntraced(function* () {
    yield* showBacklog
    const { isFull, rooms } = yield* Space
    showRooms(rooms().map((room) => ({ ...room, full: isFull([room.stream]) })))
    return {
      status: 200,
      headers: { "Content-Type": textFormat },
      html: yield* PrometheusMetrics.format(),
      errno: 0
    }
  }),
  doc: {
    summary:
      "Counts and times as Prometheus text. Of the process that answers, but for what waits, " +
      "which is of the whole service",
    responses: { 200: null },
    textType: "text/plain"
  }
}
