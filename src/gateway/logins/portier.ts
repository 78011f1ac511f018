// GET /portier/login: asks the user. POST /portier/login: sends a browser to the broker, which
// mails to the user. POST /portier/verify: the browser returns, and gets the token of a session.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type Description, operation } from "../operation.ts"
import { questionPage } from "./html.ts"
import { bodyFields, failing, pagesOf, queryFields, visiting } from "./pages.ts"

/** Begins nothing: a link can stand in anybody's mail. */
export const portierLoginGet = operation({
  access: "anyone",
  crossSite: "open",
  read: (call) => Effect.succeed(queryFields(call)),
  run: Effect.fnUntraced(function* (fields, call) {
    const { ask } = yield* pagesOf("portier", "portier")
    return yield* Effect.matchEffect(ask(fields), {
      onSuccess: (question) =>
        Effect.succeed(questionPage(question, `${call.rootUrl}/portier/login`)),
      onFailure: (error) => failing(error, call, "portier")
    })
  }),
  doc: {
    summary: "Ask whether to begin a login by mail: a page with a form",
    parameters: ["portier"],
    responses: { 200: null },
    textType: "text/html",
    errors: [404]
  }
})

const post = (
  page: "begin" | "finish",
  doc: Pick<Description, "summary" | "body" | "bodyExample">
) =>
  operation({
    access: "anyone",
    crossSite: "open",
    read: bodyFields,
    run: Effect.fnUntraced(function* (fields, call) {
      return yield* visiting(yield* pagesOf("portier", "portier"), page, fields, call, 302)
    }),
    doc: { ...doc, bodyRequired: true, responses: { 302: null }, errors: [404, 413, 415] }
  })

export const portierLoginPost = post("begin", {
  summary: "Begin a login by mail: a redirect to the broker",
  body: Schema.Struct({ email: Schema.String, redirect: Schema.String }),
  bodyExample: { email: "anna@example.org", redirect: "https://app.example.org/#token=" }
})

export const portierVerifyPost = post("finish", {
  summary: "End a login by mail: a redirect to the page, with a session's token in the fragment",
  body: Schema.Struct({ id_token: Schema.String }),
  bodyExample: { id_token: "eyJ..." }
})
