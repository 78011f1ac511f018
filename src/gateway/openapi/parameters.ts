// Parameters and headers in the API description: the query parameters and request headers in the
// groups that operations name, and the response headers, of successes those that scripts may read,
// of errors those that say how to go on.
import { ttlSecondsMax, Urgency } from "#domain/broadcast.ts"
import { BroadcastState } from "#domain/broadcast-state.ts"
import { Fate } from "#domain/outcome.ts"
import { pushServiceNames } from "#domain/subscription/endpoint.ts"
import { endpointHash } from "#domain/subscription/owners.ts"
import { channelBytesMax } from "#streams/tokens.ts"
import { isTryLater } from "../http/response-headers.ts"
import { subscriptionExample } from "../subscriptions/form.ts"

type Json = Readonly<Record<string, unknown>>

interface Parameter {
  readonly in: "query" | "header"
  readonly name: string
  readonly description: string
  readonly schema: Readonly<Record<string, unknown>>
}

const text = { type: "string" }
const time = { type: "string", format: "date-time" }
const timestamp = { type: "integer", minimum: 0 }
/** `*`, or entity tags of RFC 9110 section 8.8.3. */
const tags = {
  type: "string",
  pattern: '^(\\*|[ ,]*(W/)?"[!#-~]*"( *,[ ,]*(W/)?"[!#-~]*")*[ ,]*)$',
  examples: ['"1700000000000"']
}
const parameterIn =
  (place: Parameter["in"]) =>
  (name: string, description: string, schema: Parameter["schema"]): Parameter => ({
    in: place,
    name,
    description,
    schema
  })
const query = parameterIn("query")
const header = parameterIn("header")

const fields = query(
  "_fields",
  "Comma-separated fields to show; id and last_modified always are. Dots reach into objects.",
  text
)

const ifMatch = header(
  "If-Match",
  "Only if the timestamp, between double quotes, is still this one or one of these, or if " +
    "there is " +
    "something at all (*). A weak tag (W/) never matches.",
  tags
)

const limit = query("_limit", "At most so many objects; Next-Page leads to the rest.", {
  type: "integer",
  minimum: 0
})
const token = query("_token", "Where a page begins; only ever taken from Next-Page.", text)

export const parameterGroups: Readonly<Record<string, ReadonlyArray<Parameter>>> = {
  fields: [fields],
  listing: [
    query(
      "_since",
      "Changed after this timestamp; tombstones of removed objects are then part of the list.",
      timestamp
    ),
    query("_before", "Changed before this timestamp.", timestamp),
    query("_to", "Deprecated: the former name of _before.", timestamp),
    query("_sort", "Comma-separated fields; a minus sign before one turns its order.", text),
    limit,
    token,
    query(
      "id",
      "Only the object of this id. Every other field may be filtered the same way, with the " +
        "prefixes not_, lt_, gt_, min_, max_, in_, exclude_, like_, has_, contains_ and " +
        "contains_any_.",
      text
    ),
    query("last_modified", "Only what was last changed at this timestamp.", timestamp)
  ],
  pages: [limit, token],
  token: [token],
  dead: [
    query("broadcast", "Only those of this broadcast.", text),
    query("since", "Only those that were given up at this time or later.", time)
  ],
  broadcasts: [
    query("publisher", "Only those of this publisher.", text),
    query("state", "Only those in this state.", { enum: BroadcastState.literals }),
    query("test", "Tests, too. Operators see them anyway.", { enum: ["true"] }),
    query("since", "Only those that were accepted or started at this time or later.", time),
    query("before", "Only those that were accepted or started before this time.", time)
  ],
  drafts: [query("author", "Only those of this author.", text)],
  ifMatch: [ifMatch],
  channels: [query("prefix", "Only those whose names begin so, in any case.", text)],
  events: [
    header(
      "Last-Event-ID",
      "The id of the last event that the client has. Browsers send it when they come back.",
      text
    )
  ],
  pushes: [
    query("outcome", "Only those with this outcome.", { enum: Fate.literals }),
    query("push_service", "Only those at this push service.", { enum: pushServiceNames }),
    query("user", "Only those to this user. For operators.", text)
  ],
  openidLogin: [
    query(
      "callback",
      "The page to return to, of an allowed host. The access token is added to its fragment.",
      text
    ),
    query("prompt", "none: without asking the user, or not at all.", { enum: ["none"] })
  ],
  openidToken: [
    query("code", "The code of the issuer.", text),
    query("state", "What the login began with.", text)
  ],
  portier: [
    query("email", "The mail address of the user.", text),
    query(
      "redirect",
      "The page to return to, of an allowed host. The session's token is added to its fragment.",
      text
    )
  ],
  preconditions: [
    ifMatch,
    header(
      "If-None-Match",
      "Only if the timestamp is another than each of these. With *: only if there is nothing yet.",
      tags
    )
  ],
  renewal: [
    header(
      "Prefer",
      "renewal: the response has a secret by which the subscription is renewed without a login.",
      { type: "string", examples: ["renewal"] }
    )
  ],
  ifNoneMatch: [
    header("If-None-Match", "Tags of states that the client has: then the response is 304.", tags)
  ],
  broadcast: [
    header("TTL", "Seconds for which push services keep the message (RFC 8030).", {
      type: "integer",
      minimum: 0,
      maximum: ttlSecondsMax
    }),
    header("Urgency", "RFC 8030 section 5.3.", { type: "string", enum: Urgency.literals }),
    header(
      "Topic",
      "Replaces a message of the same topic that was not delivered yet (RFC 8030 section 5.4).",
      {
        type: "string",
        pattern: "^[A-Za-z0-9_-]{1,32}$"
      }
    ),
    header(
      "Idempotency-Key",
      "A repeated request with the same key is the same broadcast, for an hour.",
      {
        type: "string",
        pattern: "^[ -~]{1,255}$"
      }
    )
  ]
}

export const pathParameters: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  id: {
    type: "string",
    pattern: "^[A-Za-z0-9][A-Za-z0-9_-]*$",
    examples: [endpointHash(subscriptionExample.data.endpoint)]
  },
  channel: {
    type: "string",
    minLength: 1,
    maxLength: channelBytesMax,
    description: `1 to ${channelBytesMax} bytes of UTF-8 without a slash`,
    examples: ["news"]
  },
  user: {
    type: "string",
    description:
      "<policy>:<id> as GET /v1/ shows it to the user, or <policy>:<mail address>; " +
      "percent-encoded, slashes too",
    examples: ["openid:42"]
  },
  policy: { type: "string", pattern: "^openid(-[a-z0-9-]+)?$", examples: ["openid"] },
  broadcast: { type: "string", pattern: "^[1-9][0-9]{0,14}$", examples: ["3"] },
  draft: {
    type: "string",
    pattern: "^[A-Za-z0-9_-]{1,64}$",
    examples: ["5c8b6f0e-6f0c-4f7e-9d7e-0a3a4f1f2b11"]
  }
}

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

const ofError = (status: number): Json => {
  if (status === 401)
    return {
      "WWW-Authenticate": describedHeader("Schemes that are understood (RFC 9110 section 11.6.1).")
    }
  // Not of another user's request, which is refused before any state is read.
  if (status === 412)
    return Object.fromEntries(
      ofState.map((name) => [name, { ...shownHeaders[name], required: false }])
    )
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

const pick = (names: ReadonlyArray<string>): Json =>
  Object.fromEntries(
    names.filter((name) => name in shownHeaders).map((name) => [name, shownHeaders[name]])
  )
