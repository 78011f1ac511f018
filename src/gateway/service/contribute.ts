// GET /contribute.json: how to contribute to the project.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { docsUrl } from "../http/links.ts"
import { ok } from "../http/request.ts"
import { operation } from "../operation.ts"
import { GatewaySettings } from "../settings.ts"

export const contributeGet = operation({
  access: "anyone",
  run: Effect.fnUntraced(function* (_, { rootUrl }) {
    const settings = yield* GatewaySettings
    return ok({
      name: settings.projectName,
      description:
        "Broadcasts a notification to everybody who is registered to a channel, by Web Push.",
      repository: { license: "MIT", type: "git" },
      participate: { home: docsUrl(settings, rootUrl), docs: docsUrl(settings, rootUrl) },
      keywords: ["web push", "broadcast", "notifications", "nats", "jetstream"]
    })
  }),
  doc: {
    summary: "How to take part in the project",
    responses: { 200: Schema.Record(Schema.String, Schema.Unknown) }
  }
})
