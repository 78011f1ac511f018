// GET /__api__: the API described, as OpenAPI 3.1 for programs and as a page for people.
import { Effect, Schema } from "effect"
import { prefersHtml } from "../http/media.ts"
import { ok } from "../http/request.ts"
import type { Endpoint, Operation } from "../operation.ts"
import { GatewaySettings } from "../settings.ts"
import { openApiOf } from "./openapi.ts"
import { apiPage, pagePolicy } from "./page.ts"

/** Stands for the root URL, which a client's Host may choose, in what is made once. */
const anyRootUrl = "https://root.invalid"

interface Described {
  readonly document: ReturnType<typeof openApiOf>
  readonly page: string
}

/** Made once: it takes 17 ms. */
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
