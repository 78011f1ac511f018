// The response headers in the API description: of successes those that scripts may read, of errors
// those that say how to go on.
import { isTryLater } from "../http/response-headers.ts"

type Json = Readonly<Record<string, unknown>>

const header = (
  description: string,
  type: "string" | "integer" = "string",
  required = true
): Json => ({
  description,
  required,
  schema: { type }
})

const known: Readonly<Record<string, Json>> = {
  ETag: header(
    "Names this state between double quotes, for If-Match and If-None-Match; " +
      "but for the VAPID public key and files it is a timestamp."
  ),
  "Last-Modified": header("The same timestamp, in whole seconds."),
  "Total-Records": header("How many objects match, on all pages together.", "integer"),
  "Total-Objects": header("The same as Total-Records.", "integer"),
  "Next-Page": header("Absolute URL of the next page; the last page has none.", "string", false),
  Location: header(
    "Absolute URL of what was made: a subscription, or a broadcast and its progress. A dry run " +
      "has none.",
    "string",
    false
  )
}

/** The headers of 304 and 412: they identify the current state. */
const ofState = ["ETag", "Last-Modified"]

const pick = (names: ReadonlyArray<string>): Json =>
  Object.fromEntries(names.filter((name) => name in known).map((name) => [name, known[name]]))

const ofError = (status: number): Json => {
  if (status === 401)
    return { "WWW-Authenticate": header("Schemes that are understood (RFC 9110 section 11.6.1).") }
  if (status === 412) return pick(ofState)
  return isTryLater({ status, ...(status === 409 && { error: "too-many-writes" as const }) })
    ? {
        "Retry-After": header(
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
