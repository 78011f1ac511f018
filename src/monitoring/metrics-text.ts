// The metrics of this process, the backlog and the space of the streams, as Prometheus reads them.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import { Backlog, type Waiting } from "#nats/watch/backlog.ts"
import { refusals, Space } from "#nats/watch/space.ts"
import { consumers } from "#streams/index.ts"
import { type BacklogState, showBacklog, showRefusal, showRoom } from "#telemetry/nats-metrics.ts"
import { isOfProcess } from "#telemetry/process-metrics.ts"

/** The Content-Type of the text. */
export const textFormat = "text/plain; version=0.0.4; charset=utf-8"

/**
 * When the broadcast of the oldest waiting message was accepted, in milliseconds since the epoch.
 */
const acceptedAtOf = ({ consumer, oldest }: Waiting): number => {
  // A paused broadcast is meant to wait, and one with a rate.
  if (oldest === undefined || consumer === "states" || consumer === "limited")
    return Number.POSITIVE_INFINITY
  return oldest.message.type === "shard/1" || oldest.message.type === "retry/1"
    ? oldest.message.acceptedAt
    : oldest.at
}

/** Until NATS was read for the first time. */
const nothing: BacklogState = {
  oldestAt: undefined,
  jobs: consumers.map(({ consumer: { name } }) => ({ consumer: name, messages: 0 })),
  appended: []
}
let latest = nothing

const readBacklog = Effect.gen(function* () {
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
  showBacklog(latest, known, yield* Clock.currentTimeMillis)
})

/** The API shows these to nobody: the process as a program, and the names of tokens. */
const isForOperators = (name: string): boolean =>
  isOfProcess(name) || name.startsWith("bellcast_token_")

/**
 * The metrics. What NATS does not say within 2 s is shown as it was last. `anybody`: without those
 * for operators.
 */
export const metricsText = Effect.fnUntraced(function* (reader: "operator" | "anybody") {
  yield* readBacklog
  const { isFull, rooms } = yield* Space
  for (const room of rooms()) showRoom(room)
  for (const { refused, share, stream } of refusals)
    showRefusal(stream, refused, isFull([stream], share))
  const shown = [...(yield* Metric.MetricRegistry)].filter(
    ([, { id }]) => reader === "operator" || !isForOperators(id)
  )
  // Loaded with the first request: it brings a part of an HTTP server of its own, 7 MiB.
  const { format } = yield* Effect.promise(() => import("effect/observability/PrometheusMetrics"))
  return yield* Effect.provideService(format(), Metric.MetricRegistry, new Map(shown))
})
