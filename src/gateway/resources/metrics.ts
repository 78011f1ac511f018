// GET /__metrics__: what this process has counted, for Prometheus to gather.
import { Effect } from "effect"
import { PrometheusMetrics } from "effect/observability"
import type { Operation } from "../operation.ts"

const textFormat = "text/plain; version=0.0.4; charset=utf-8"

export const metricsGet: Operation<void> = {
  access: "anyone",
  read: () => Effect.void,
  run: Effect.fnUntraced(function* () {
    return { status: 200, headers: { "Content-Type": textFormat }, html: yield* PrometheusMetrics.format(), errno: 0 }
  }),
  doc: {
    summary: "Counts and times as Prometheus text. Of the process that answers: each process has its own",
    answers: { 200: null }
  }
}
