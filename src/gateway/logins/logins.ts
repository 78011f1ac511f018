// The endpoints of login pages. Of an OpenID Connect issuer: GET /openid/{policy}/login sends a
// browser there, GET /openid/{policy}/token takes it back with an access token. Of Portier: GET
// /portier/login asks the user, POST /portier/login sends the browser to the broker, which mails to
// the user, POST /portier/verify takes it back with the token of a session.
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { Identity } from "#identity/identity.ts"
import type { LoginError, LoginPages, Visit } from "#identity/login/pages.ts"
import { loginErrors } from "#identity/login/pages.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { type ApiRequest, type Call, prefersHtml, prefersJson, readForm } from "../http/request.ts"
import {
  type ApiResponse,
  type ErrorDetail,
  errorResponse,
  ok,
  refuse,
  refuseInvalid,
  retryAfter
} from "../http/response.ts"
import { noStore } from "../http/response-headers.ts"
import { versionPrefix } from "../http/version.ts"
import { type Description, operation } from "../operation.ts"
import { GatewaySettings } from "../settings.ts"
import { failurePage, questionPage } from "./html.ts"

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

/** Begins nothing: a link can stand in anybody's mail. */
export const portierLoginGet = operation({
  access: "anyone",
  crossSite: "open",
  read: (call) => Effect.succeed(queryFields(call)),
  run: Effect.fnUntraced(function* (fields, call) {
    const { ask } = yield* pagesOf("portier", "portier")
    const consoleUrl = consoleUrlOf(yield* GatewaySettings)
    return yield* Effect.matchEffect(ask({ fields, consoleUrl }), {
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

const portierPost = (
  page: "begin" | "finish",
  doc: Pick<Description, "summary" | "body" | "bodyExample">
) =>
  operation({
    access: "anyone",
    crossSite: "open",
    read: (call, errors) => bodyFields(call, errors),
    run: Effect.fnUntraced(function* (fields, call) {
      return yield* visiting(yield* pagesOf("portier", "portier"), page, fields, call, 302)
    }),
    doc: { ...doc, bodyRequired: true, responses: { 302: null }, errors: [404, 413, 415] }
  })

export const portierLoginPost = portierPost("begin", {
  summary: "Begin a login by mail: a redirect to the broker",
  body: Schema.Struct({ email: Schema.String, redirect: Schema.String }),
  bodyExample: { email: "anna@example.org", redirect: "https://app.example.org/#token=" }
})

export const portierVerifyPost = portierPost("finish", {
  summary: "End a login by mail: a redirect to the page, with a session's token in the fragment",
  body: Schema.Struct({ id_token: Schema.String }),
  bodyExample: { id_token: "eyJ..." }
})

type Fields = Visit["fields"]

/** The parameters of the query string. Of several with one name, the last counts. */
const queryFields = ({ query }: Call): Fields => Object.fromEntries(new URLSearchParams(query))

/** The parameters of a form or a JSON object in the body, and those of the query string. */
const bodyFields = (call: Call, errors: Array<ErrorDetail>) =>
  Effect.map(readForm(call.request, errors), (form): Fields => ({ ...queryFields(call), ...form }))

/** The pages of a policy; a policy that is off has none. */
const pagesOf = Effect.fnUntraced(function* <At extends LoginPages["at"]>(at: At, name: string) {
  const { policies } = yield* Identity
  const pages = policies.find((policy) => policy.name === name)?.pages
  return pages?.at === at
    ? (pages as Extract<LoginPages, { readonly at: At }>)
    : yield* refuse("unknown-url")
})

/** The visit of a browser to one of the pages. `fields`: its parameters. */
const visiting = Effect.fnUntraced(function* (
  pages: LoginPages,
  page: "begin" | "finish",
  fields: Fields,
  call: Call,
  status: 302 | 307
) {
  const { request, rootUrl } = call
  const { address, headers } = request
  const consoleUrl = consoleUrlOf(yield* GatewaySettings)
  const from = { page: pageAt(request), cookies: headers["cookie"] }
  return yield* Effect.matchEffect(pages[page]({ rootUrl, address, fields, consoleUrl, ...from }), {
    onSuccess: ({ location, setCookie }) =>
      Effect.succeed(departing(status, location, { "Set-Cookie": setCookie })),
    onFailure: (error) => {
      const back = page === "begin" ? undefined : pages.returnOf(from.cookies, error)
      return failing(
        error,
        call,
        pages.at,
        back === undefined ? undefined : departing(status, back)
      )
    }
  })
})

/** The page of the console, on the host where it is served. */
const consoleUrlOf = ({ consoleOrigin }: GatewaySettings["Service"]): string | undefined =>
  Option.match(consoleOrigin, {
    onNone: () => undefined,
    onSome: (origin) => `${origin}/${versionPrefix}/console/`
  })

/** See `Visit`. Pages in a sandbox, and those that send no Referer, have the origin "null". */
const pageAt = ({ headers: { origin, referer = "" } }: ApiRequest): string =>
  origin === undefined || origin === "null" ? referer : origin

/** Sends the browser on with this status. Pages must not learn where it came from. */
const departing = (status: number, location: string, more: ApiResponse["headers"] = {}) =>
  ok(
    undefined,
    { Location: location, "Referrer-Policy": "no-referrer", ...noStore, ...more },
    status
  )

/**
 * Ends a login that failed: for a program with JSON, for a browser that began it at the page to
 * which it returns (`back`), and for any other browser with a page of ours.
 */
const failing = Effect.fnUntraced(function* (
  error: LoginError,
  { request }: Call,
  at: LoginPages["at"],
  back?: ApiResponse
) {
  if (error._tag === "IdentityUnavailable") yield* logUnavailable({ err: error })
  const response = errorOf(error, request)
  const { accept } = request.headers
  if (back !== undefined && !prefersJson(accept))
    return { ...back, ...(response.error && { error: response.error }) }
  return prefersHtml(accept) ? failurePage(response, error, at) : response
})

/** The response to a program whose login failed. */
const errorOf = (error: LoginError, { method }: ApiRequest): ApiResponse => {
  switch (error._tag) {
    case "LoginRefused": {
      const { description, field: name } = error
      const location = method === "POST" ? "body" : "querystring"
      return name === undefined
        ? errorResponse("invalid-request", { message: description })
        : refuseInvalid([{ location, name, description }]).response
    }
    case "LoginFailed":
      return errorResponse("invalid-login", { message: loginErrors[error.code] })
    case "TooManyLogins":
      return errorResponse("too-many-logins", retryAfter(error.waitMillis))
    case "TooManyFailures":
      return errorResponse("too-many-wrong-credentials", retryAfter(error.waitMillis))
    case "IdentityUnavailable":
      return errorResponse("unavailable")
  }
}

/** Rate-limited, as during an outage every login fails. */
const logUnavailable = makeRateLimitedLog("identity unavailable", Effect.logError)
