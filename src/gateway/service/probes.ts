// Endpoints that load balancers and Prometheus ask every few seconds: GET /__heartbeat__, whether
// the dependencies of this server work, GET /__lbheartbeat__, whether the server responds at all,
// and GET /__metrics__.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Health, HealthView } from "#monitoring/health.ts"
import { metricsText, textFormat } from "#monitoring/metrics-text.ts"
import { ok, refuse } from "../http/response.ts"
import { operation } from "../operation.ts"
import { GatewaySettings } from "../settings.ts"

export const heartbeatGet = operation({
  access: "anyone",
  run: Effect.fnUntraced(function* () {
    if (!(yield* GatewaySettings).publicHeartbeat) return yield* refuse("forbidden")
    const view = yield* (yield* Health).view
    return ok(view, {}, Object.values(view).every(Boolean) ? 200 : 503)
  }),
  doc: {
    summary:
      "Whether everything this server depends on works; space: whether there is room for more; " +
      "delivery: whether broadcasts that wait are planned and delivered; " +
      "roles: whether processes run all roles; " +
      "by the name of a policy: whether the server that it depends on works",
    responses: { 200: HealthView, 503: HealthView },
    errors: [403]
  }
})

const Empty = Schema.Record(Schema.String, Schema.Unknown)

export const lbheartbeatGet = operation({
  access: "anyone",
  run: () => Effect.map(Health, ({ isLeaving }) => ok({}, {}, isLeaving() ? 503 : 200)),
  doc: {
    summary:
      "Whether load balancers may send requests: 200, or 503 once this server was told to stop; " +
      "touches nothing else",
    responses: { 200: Empty, 503: Empty }
  }
})

/**
 * The metrics of this process and the backlog of the streams. The metrics port of the process has
 * the same for operators.
 */
export const metricsGet = operation({
  access: "anyone",
  run: Effect.fnUntraced(function* () {
    if (!(yield* GatewaySettings).publicMetrics) return yield* refuse("forbidden")
    return {
      status: 200,
      headers: { "Content-Type": textFormat },
      text: yield* metricsText("anybody")
    }
  }),
  doc: {
    summary:
      "Counts and times as Prometheus text. Of the process that answers, but for what waits, " +
      "which is of the whole service",
    responses: { 200: null },
    errors: [403],
    textType: "text/plain"
  }
})
