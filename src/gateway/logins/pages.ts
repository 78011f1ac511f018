// Shared by the endpoints of login pages: which policy has the page, the parameters of a visit,
// and the redirect or error that ends it.
import { Effect } from "effect"
import { Identity } from "#identity/identity.ts"
import type { Departure, LoginError, LoginPages, Visit } from "#identity/login/pages.ts"
import { readForm } from "../http/body.ts"
import { type ErrorDetail, refuse, refuseInvalid } from "../http/errors.ts"
import { type ApiRequest, type ApiResponse, type Call, ok, type Refused } from "../http/request.ts"
import { noStore } from "../http/response-headers.ts"

type Fields = Visit["fields"]

/** The parameters of the query string. Of several with one name, the last counts. */
export const queryFields = ({ query }: Call): Fields =>
  Object.fromEntries(new URLSearchParams(query))

/** The parameters of a form or a JSON object in the body, and those of the query string. */
export const bodyFields = (call: Call, errors: Array<ErrorDetail>) =>
  Effect.map(readForm(call.request, errors), (form): Fields => ({ ...queryFields(call), ...form }))

/** The pages of a policy; a policy that is off has none. */
export const pagesOf = Effect.fnUntraced(function* <At extends LoginPages["at"]>(
  at: At,
  name: string
) {
  const { policies } = yield* Identity
  const pages = policies.find((policy) => policy.name === name)?.pages
  return pages?.at === at
    ? (pages as Extract<LoginPages, { readonly at: At }>)
    : yield* refuse("unknownUrl")
})

/** See `Visit`. Pages in a sandbox, and those that send no Referer, have the origin "null". */
const pageOf = ({ headers: { origin, referer = "" } }: ApiRequest): string =>
  origin === undefined || origin === "null" ? referer : origin

const retryAfter = (waitMillis: number) => ({
  headers: { "Retry-After": String(Math.ceil(waitMillis / 1000)) }
})

/** Sends the browser on with this status. Pages must not learn where it came from. */
const departing =
  (status: number) =>
  ({ location, setCookie }: Departure): ApiResponse =>
    ok(
      undefined,
      {
        Location: location,
        "Set-Cookie": setCookie,
        "Referrer-Policy": "no-referrer",
        ...noStore
      },
      status
    )

/** Makes errors of a login those of its response. */
export const answering = <A, R>(
  login: Effect.Effect<A, LoginError, R>,
  { request: { method } }: Call
) =>
  Effect.catchTags(login, {
    LoginRefused: ({ description, field: name }): Refused => {
      if (name === undefined) return refuse("invalidRequest", { message: description })
      const location = method === "POST" ? "body" : "querystring"
      return refuseInvalid([{ location, name, description }])
    },
    LoginFailed: () => refuse("invalidLogin"),
    TooManyLogins: ({ waitMillis }) => refuse("tooManyLogins", retryAfter(waitMillis)),
    TooManyFailures: ({ waitMillis }) => refuse("tooManyFailures", retryAfter(waitMillis))
  })

/** The visit of a browser to one of the pages. `fields`: its parameters. */
export const visiting = (
  page: (visit: Visit) => Effect.Effect<Departure, LoginError>,
  fields: Fields,
  call: Call,
  status: 302 | 307
) => {
  const { request, rootUrl } = call
  const { address, headers } = request
  const from = { page: pageOf(request), cookies: headers["cookie"] }
  const departure = page({ rootUrl, address, fields, ...from })
  return Effect.map(answering(departure, call), departing(status))
}
