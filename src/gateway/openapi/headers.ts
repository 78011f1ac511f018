// The response headers in the API description: of successes those that scripts may read, of errors
// those that say how to go on.
import { isTryLater } from "../http/response-headers.ts"

type Json = Readonly<Record<string, unknown>>

const describedHeader = (
  description: string,
  type: "string" | "integer" = "string",
  required = true
): Json => ({
  description,
  required,
  schema: { type }
})

const shownHeaders: Readonly<Record<string, Json>> = {
  ETag: describedHeader(
    "Names this state between double quotes, for If-Match and If-None-Match; " +
      "but for the VAPID public key and files it is a timestamp."
  ),
  "Last-Modified": describedHeader("The same timestamp, in whole seconds."),
  "Total-Records": describedHeader("How many objects match, on all pages together.", "integer"),
  "Total-Objects": describedHeader("The same as Total-Records.", "integer"),
  "Next-Page": describedHeader(
    "Absolute URL of the next page; the last page has none.",
    "string",
    false
  ),
  Location: describedHeader(
    "Absolute URL of what was made: a subscription, or a broadcast and its progress. A dry run " +
      "has none.",
    "string",
    false
  )
}

/** The headers of 304 and 412: they identify the current state. */
const ofState = ["ETag", "Last-Modified"]

const pick = (names: ReadonlyArray<string>): Json =>
  Object.fromEntries(
    names.filter((name) => name in shownHeaders).map((name) => [name, shownHeaders[name]])
  )

const ofError = (status: number): Json => {
  if (status === 401)
    return {
      "WWW-Authenticate": describedHeader("Schemes that are understood (RFC 9110 section 11.6.1).")
    }
  if (status === 412) return pick(ofState)
  return isTryLater({ status, ...(status === 409 && { error: "too-many-writes" as const }) })
    ? {
        "Retry-After": describedHeader(
          "Seconds until it is worth another try; on 409 of too-many-writes alone.",
          "integer",
          status !== 409
        )
      }
    : {}
}

/** `{ headers }` of a response with this status, or an empty object. */
export const headersOf = (
  status: number,
  exposes: ReadonlyArray<string> = []
): { readonly headers?: Json } => {
  const ofSuccess = () =>
    pick(status === 304 ? exposes.filter((name) => ofState.includes(name)) : exposes)
  const headers = status >= 400 ? ofError(status) : ofSuccess()
  return Object.keys(headers).length === 0 ? {} : { headers }
}
