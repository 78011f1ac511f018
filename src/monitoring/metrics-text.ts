// The metrics of this process, the backlog and the space of the streams, as Prometheus reads them.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import { Group } from "#children/group.ts"
import { Processes } from "#nats/connection/processes.ts"
import { Backlog, type Snapshot, type Waiting } from "#nats/watch/backlog.ts"
import { refusals, Space } from "#nats/watch/space.ts"
import { followerNames } from "#streams/followers.ts"
import { consumers } from "#streams/index.ts"
import {
  type BacklogState,
  showBacklog,
  showChecks,
  showRefusal,
  showRoles,
  showRoom
} from "#telemetry/nats-metrics.ts"
import { isOfProcess } from "#telemetry/process-metrics.ts"
import { registryWith } from "#telemetry/whole-metrics.ts"
import { Health } from "./health.ts"

/** The Content-Type of the text. */
export const textFormat = "text/plain; version=0.0.4; charset=utf-8"

/**
 * When the broadcast of the oldest waiting message was accepted, in milliseconds since the epoch.
 */
const acceptedAtOf = ({ consumer, oldest }: Waiting): number => {
  // A paused broadcast is meant to wait, and one with a rate.
  if (oldest === undefined || consumer === "states" || consumer === "limited")
    return Number.POSITIVE_INFINITY
  return oldest.message.type === "shard" || oldest.message.type === "retry"
    ? oldest.message.acceptedAt
    : oldest.at
}

const nobodyWaits = (reader: string) => ({ reader, messages: 0, dueAt: undefined })
/** Until NATS was read for the first time. */
const nothing: BacklogState = {
  oldestAt: undefined,
  readers: [...consumers.map(({ consumer: { name } }) => name), ...followerNames].map(nobodyWaits),
  appended: []
}
let latest = nothing

const stateOf = ({ appended, following, waiting }: Snapshot): BacklogState => {
  const oldestAt = Math.min(...waiting.map(acceptedAtOf))
  return {
    oldestAt: Number.isFinite(oldestAt) ? oldestAt : undefined,
    readers: [
      ...waiting.map(({ consumer, dueAt, messages }) => ({ reader: consumer, messages, dueAt })),
      ...following.map(({ dueAt, follower, messages }) => ({ reader: follower, messages, dueAt }))
    ],
    appended
  }
}

const readBacklog = Effect.gen(function* () {
  const found = yield* Effect.orElseSucceed((yield* Backlog).snapshot, () => undefined)
  if (found !== undefined) latest = stateOf(found)
  showBacklog(latest, found !== undefined, yield* Clock.currentTimeMillis)
})

/** A scrape must not wait for a check that hangs: Prometheus would take the process for dead. */
const checkWait = "2 seconds"

const readHeartbeat = Effect.gen(function* () {
  const { last, view } = yield* Health
  const found = yield* Effect.timeoutOption(view, checkWait)
  showChecks(Option.getOrElse(found, last) ?? {})
})

const readSpace = Effect.gen(function* () {
  const { isFull, rooms } = yield* Space
  for (const room of rooms()) showRoom(room)
  for (const { refused, share, stream } of refusals)
    showRefusal(stream, refused, isFull([stream], share))
})

/** The API shows these to nobody: the process as a program, and the names of tokens. */
const isForOperators = (name: string): boolean =>
  isOfProcess(name) || name.startsWith("bellcast_token_")

/**
 * The metrics. What NATS does not say within 2 s is shown as it was last. `anybody`: without those
 * for operators.
 */
export const metricsText = Effect.fnUntraced(function* (reader: "operator" | "anybody") {
  yield* Effect.all([readBacklog, readHeartbeat], { concurrency: 2, discard: true })
  yield* readSpace
  showRoles((yield* Processes).states())
  const { reports } = yield* Group
  const shown = [...registryWith(yield* Metric.MetricRegistry, reports())].filter(
    ([, { id }]) => reader === "operator" || !isForOperators(id)
  )
  // Loaded with the first request: it brings a part of an HTTP server of its own, 7 MiB.
  const { format } = yield* Effect.promise(() => import("effect/observability/PrometheusMetrics"))
  return yield* Effect.provideService(format(), Metric.MetricRegistry, new Map(shown))
})
