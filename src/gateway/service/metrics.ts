// GET /__metrics__: the metrics of this process and the backlog of the streams, for Prometheus. The
// metrics port of the process has the same for operators.
import * as Effect from "effect/Effect"
import { metricsText, textFormat } from "#monitoring/metrics-text.ts"
import { refuse } from "../http/errors.ts"
import { operation } from "../operation.ts"
import { GatewaySettings } from "../settings.ts"

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
