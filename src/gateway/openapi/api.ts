// GET /__api__: the API description, as OpenAPI 3.1 for programs and as an HTML page for people.
import { Effect, Schema } from "effect"
import { prefersHtml } from "../http/media.ts"
import { ok } from "../http/request.ts"
import type { Endpoint, Operation } from "../operation.ts"
import { GatewaySettings } from "../settings.ts"
import { openApiOf } from "./openapi.ts"
import { apiPage, pagePolicy } from "./page.ts"

/** Placeholder of the root URL, which depends on the request's Host. */
const anyRootUrl = "https://root.invalid"

interface Described {
  readonly document: ReturnType<typeof openApiOf>
  readonly page: string
}

/** Computed once, in 17 ms. */
let described: Described | undefined

const describe = (
  endpoints: ReadonlyArray<Endpoint>,
  about: { readonly title: string; readonly version: string; readonly rootUrl: string }
): Described => {
  if (described === undefined) {
    const document = openApiOf(endpoints, { ...about, rootUrl: anyRootUrl })
    described = { document, page: apiPage(document) }
  }
  const { document, page } = described
  return {
    document: { ...document, servers: [{ url: about.rootUrl }] },
    page: page.replaceAll(anyRootUrl, () => about.rootUrl)
  }
}

export const apiGet: Operation<void> = {
  access: "anyone",
  read: () => Effect.void,
  run: Effect.fnUntraced(function* (_, { request, rootUrl }, { endpoints }) {
    const { projectName, projectVersion } = yield* GatewaySettings
    const about = { title: projectName, version: projectVersion, rootUrl }
    const { document, page } = describe(endpoints, about)
    const vary = { Vary: "Accept" }
    if (!prefersHtml(request.headers["accept"])) return ok(document, vary)
    const headers = {
      ...vary,
      "Content-Type": "text/html; charset=UTF-8",
      "Content-Security-Policy": pagePolicy
    }
    return { status: 200, headers, html: page, errno: 0 }
  }),
  doc: {
    summary: "This description",
    responses: { 200: Schema.Record(Schema.String, Schema.Unknown) },
    textType: "text/html"
  }
}
