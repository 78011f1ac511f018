// The URL of the next page of a list.
import * as Effect from "effect/Effect"
import type { JsonObject } from "#basics/json.ts"
import type { Settings } from "#config"
import { errorIn, refuseInvalid } from "../http/errors.ts"
import type { Call, Refused } from "../http/request.ts"
import { GatewaySettings } from "../settings.ts"
import { nextPageCharsMax } from "./field.ts"
import { issueToken } from "./page-token.ts"
import type { Listing } from "./query.ts"
import { effectiveLimit } from "./select.ts"

const endless = errorIn(
  "querystring",
  null,
  `The URL of the next page would have more than ${nextPageCharsMax} characters: ` +
    "shorten the query string, or sort by fields with shorter values"
)

/** The most objects in a page: those that the client wants, and at most `max`. 0: no limit. */
export const limitOf = ({ limit }: Listing, max: number) =>
  Effect.map(GatewaySettings, ({ paginateBy }) => effectiveLimit(limit, paginateBy, max))

/** A page of a list. */
interface Shown {
  /** The path of the list. */
  readonly path: string
  /** The place behind which the list goes on, for the token; undefined: this is the last page. */
  readonly place: JsonObject | undefined
  /** Undefined: the list takes none. */
  readonly limit: number | undefined
}

/**
 * The header with the absolute URL of the next page: the same query string with another limit and
 * token. The last page has none.
 */
export const nextPage = Effect.fnUntraced(function* (
  call: Call,
  { limit, path, place }: Shown
): Effect.fn.Return<Record<string, string>, Refused, GatewaySettings | Settings> {
  if (place === undefined) return {}
  // Check before signing: a field may have 16 KiB, and the token is the longest part of the URL.
  if (JSON.stringify(place).length > nextPageCharsMax) return yield* refuseInvalid([endless])
  const token = yield* issueToken(call, place)
  const others = call.query
    .split("&")
    .filter((pair) => pair !== "" && !/^(_limit|_token)(=|$)/.test(pair))
  const limited = limit === undefined ? [] : [`_limit=${limit}`]
  const query = [...others, ...limited, `_token=${token}`].join("&")
  const url = `${call.rootUrl}${path}?${query}`
  if (url.length > nextPageCharsMax) return yield* refuseInvalid([endless])
  return { "Next-Page": url }
})
