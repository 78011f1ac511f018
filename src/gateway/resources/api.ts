// GET /__api__: the API described, as OpenAPI 3.1 for programs and as a page for people.
import { Effect, Schema } from "effect"
import { apiPage, pagePolicy } from "../api-page.ts"
import { ok } from "../ask.ts"
import { prefersHtml } from "../media.ts"
import { openApiOf } from "../openapi.ts"
import type { Operation } from "../operation.ts"
import { GatewaySettings } from "../settings.ts"

export const apiGet: Operation<void> = {
  access: "anyone",
  read: () => Effect.void,
  run: Effect.fnUntraced(function* (_, { ask, rootUrl }, { endpoints }) {
    const { projectName, projectVersion } = yield* GatewaySettings
    const document = openApiOf(endpoints, { title: projectName, version: projectVersion, rootUrl })
    const vary = { Vary: "Accept" }
    if (!prefersHtml(ask.headers["accept"])) return ok(document, vary)
    const headers = {
      ...vary,
      "Content-Type": "text/html; charset=UTF-8",
      "Content-Security-Policy": pagePolicy
    }
    return { status: 200, headers, html: apiPage(document), errno: 0 }
  }),
  doc: {
    summary: "This description",
    answers: { 200: Schema.Record(Schema.String, Schema.Unknown) },
    textType: "text/html"
  }
}
