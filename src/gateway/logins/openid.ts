// GET /openid/{policy}/login: sends a browser to the policy's issuer. GET /openid/{policy}/token:
// the browser returns, and gets an access token.
import * as Effect from "effect/Effect"
import { operation } from "../operation.ts"
import { pagesOf, queryFields, visiting } from "./pages.ts"

const openidGet = (page: "begin" | "finish", summary: string, parameters: ReadonlyArray<string>) =>
  operation({
    access: "anyone",
    crossSite: "open",
    read: (call) => Effect.succeed(queryFields(call)),
    run: Effect.fnUntraced(function* (fields, call) {
      const pages = yield* pagesOf("openid", call.params["policy"] ?? "")
      return yield* visiting(pages, page, fields, call, 307)
    }),
    doc: { summary, parameters, responses: { 307: null }, errors: [404] }
  })

export const openidLoginGet = openidGet("begin", "Begin a login: a redirect to the issuer", [
  "openidLogin"
])

export const openidTokenGet = openidGet(
  "finish",
  "End a login: a redirect to the page, with the access token in the fragment",
  ["openidToken"]
)
