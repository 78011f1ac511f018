// GET and POST /portier/login: sends a browser to the broker, which mails to the user. POST
// /portier/verify: the browser returns, and gets the token of a session.
import { Effect, Schema } from "effect"
import type { Visit } from "#identity/login/pages.ts"
import type { Description, Operation } from "../operation.ts"
import { bodyFields, pagesOf, queryFields, visiting } from "./pages.ts"

type Fields = Visit["fields"]

const loginDoc: Description = {
  summary: "Begin a login by mail: a redirect to the broker",
  parameters: [],
  responses: { 302: null },
  errors: [404]
}

const login = (read: Operation<Fields>["read"], doc: Description): Operation<Fields> => ({
  access: "anyone",
  crossSite: "open",
  read,
  run: Effect.fnUntraced(function* (fields, call) {
    const { begin } = yield* pagesOf("portier", "portier")
    return yield* visiting(begin, fields, call, 302)
  }),
  doc
})

export const portierLoginGet = login((call) => Effect.succeed(queryFields(call)), {
  ...loginDoc,
  parameters: ["portier"]
})

export const portierLoginPost = login(bodyFields, {
  ...loginDoc,
  body: Schema.Struct({ email: Schema.String, redirect: Schema.String }),
  bodyExample: { email: "anna@example.org", redirect: "https://app.example.org/#token=" },
  bodyRequired: true,
  errors: [404, 413, 415]
})

export const portierVerifyPost: Operation<Fields> = {
  access: "anyone",
  crossSite: "open",
  read: bodyFields,
  run: Effect.fnUntraced(function* (fields, call) {
    const { finish } = yield* pagesOf("portier", "portier")
    return yield* visiting(finish, fields, call, 302)
  }),
  doc: {
    summary: "End a login by mail: a redirect to the page, with a session's token in the fragment",
    body: Schema.Struct({ id_token: Schema.String }),
    bodyExample: { id_token: "eyJ..." },
    bodyRequired: true,
    responses: { 302: null },
    errors: [404, 413, 415]
  }
}
