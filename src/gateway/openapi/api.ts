// GET /__api__: the API description, as OpenAPI 3.1 for programs and as an HTML page for people.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Identity } from "#identity/identity.ts"
import { pagePolicy, pageType } from "../html.ts"
import { prefersHtml } from "../http/request.ts"
import { ok, refuse } from "../http/response.ts"
import { projectVersion } from "../http/version.ts"
import { type Endpoint, Gateway, operation } from "../operation.ts"
import { GatewaySettings } from "../settings.ts"
import { type About, openApiOf, type SecuritySchemes } from "./openapi.ts"
import { apiPage, style } from "./page.ts"

/** Placeholder of the root URL, which depends on the request's Host. */
const anyRootUrl = "https://root.invalid"

interface Described {
  readonly document: ReturnType<typeof openApiOf>
  readonly page: string
}

/** Computed once, in 17 ms. */
let described: Described | undefined

const describe = (endpoints: ReadonlyArray<Endpoint>, about: About): Described => {
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

/** The scheme of each policy, in the terms of OpenAPI. */
const schemesOf = (policies: Identity["Service"]["policies"]): SecuritySchemes =>
  Object.fromEntries(
    policies.map(({ challenge, name }) => [
      name,
      { type: "http", scheme: challenge.split(" ", 1)[0]!.toLowerCase() }
    ])
  )

export const apiGet = operation({
  access: "anyone",
  run: Effect.fnUntraced(function* (_, { request, rootUrl }) {
    const { projectName, publicApiDescription } = yield* GatewaySettings
    if (!publicApiDescription) return yield* refuse("forbidden")
    const { policies } = yield* Identity
    const { endpoints } = yield* Gateway
    const schemes = schemesOf(policies)
    const about = { title: projectName, version: projectVersion, rootUrl, schemes }
    const { document, page } = describe(endpoints, about)
    const vary = { Vary: "Accept" }
    if (!prefersHtml(request.headers["accept"])) return ok(document, vary)
    const headers = { ...vary, ...pageType, ...pagePolicy(style) }
    return { status: 200, headers, text: page }
  }),
  doc: {
    summary: "This description",
    responses: { 200: Schema.Record(Schema.String, Schema.Unknown) },
    errors: [403],
    textType: "text/html"
  }
})
