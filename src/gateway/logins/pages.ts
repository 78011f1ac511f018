// Shared by the endpoints of login pages: which policy has the page, the parameters of a visit,
// and the redirect or error that ends it.
import { Effect } from "effect"
import { Identity } from "#identity/identity.ts"
import type { Departure, LoginError, LoginPages, Visit } from "#identity/login/pages.ts"
import { readForm } from "../http/body.ts"
import { isCrossSite } from "../http/cross-site.ts"
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
export const pagesOf = Effect.fnUntraced(function* (at: LoginPages["at"], name: string) {
  const { policies } = yield* Identity
  const pages = policies.find((policy) => policy.name === name)?.pages
  return pages?.at === at ? pages : yield* refuse("unknownUrl")
})

/**
 * See `Visit`. Pages in a sandbox, and those that send no Referer with a form, have "null". With a
 * link, browsers before 2023 send nothing but a Referer.
 */
const pageOf = (request: ApiRequest, rootUrl: string): string | undefined => {
  const { origin, referer, "sec-fetch-site": site } = request.headers
  const own = new URL(rootUrl).origin
  const isOfOthers =
    site === undefined && origin === undefined && referer !== undefined
      ? URL.parse(referer)?.origin !== own
      : isCrossSite(request, own)
  if (!isOfOthers) return undefined
  return origin === undefined || origin === "null" ? (referer ?? "") : origin
}

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

/** The visit of a browser to one of the pages. `fields`: its parameters. */
export const visiting = Effect.fnUntraced(function* (
  page: (visit: Visit) => Effect.Effect<Departure, LoginError>,
  fields: Fields,
  { request, rootUrl }: Call,
  status: 302 | 307
) {
  const { address, headers } = request
  const location = request.method === "POST" ? "body" : "querystring"
  const from = { page: pageOf(request, rootUrl), cookies: headers["cookie"] }
  return yield* page({ rootUrl, address, fields, ...from }).pipe(
    Effect.map(departing(status)),
    Effect.catchTags({
      LoginRefused: ({ description, field }): Refused =>
        field === undefined
          ? refuse("invalidRequest", { message: description })
          : refuseInvalid([{ location, name: field, description }]),
      LoginFailed: () => refuse("invalidLogin"),
      TooManyLogins: ({ waitMillis }) => refuse("tooManyLogins", retryAfter(waitMillis)),
      TooManyFailures: ({ waitMillis }) => refuse("tooManyFailures", retryAfter(waitMillis))
    })
  )
})
