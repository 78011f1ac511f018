// GET and DELETE /subscriptions: the subscriptions of the caller, filtered, sorted and in pages.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { FairSemaphore } from "#clock/fair-semaphore.ts"
import { mapInTurns } from "#clock/map-in-turns.ts"
import { nextTimestamp, type SubscriptionList } from "#domain/subscription/subscription.ts"
import { renewables } from "#domain/subscription/tombstone.ts"
import { stamp, unmet } from "../http/preconditions.ts"
import type { Call } from "../http/request.ts"
import { checked, jsonResponse, ok, refuse } from "../http/response.ts"
import { noStore } from "../http/response-headers.ts"
import { project, rowsOf, textOf, tombstoneRowsOf } from "../listing/field.ts"
import { limitOf, nextPage, spendToken } from "../listing/page.ts"
import { type ListInput, type Listing, readQuery } from "../listing/query.ts"
import { matching, type Page, pageOf, placeOf } from "../listing/select.ts"
import { forUserInPath, ownerPath } from "../named-user.ts"
import { operation } from "../operation.ts"
import { changed, changeList, listOf, unchanged } from "../write.ts"
import { ListedObject, Tombstone, tombstone } from "./form.ts"

/** The largest PAGINATE_BY. A list with its tombstones is one bucket value (1 MiB). */
const limitMax = 10_000

/** The most parsed lists in memory. The largest take 5 MB each; hundreds would take 2 GB. */
export const listsAtOnce = 32
/** How long a list waits for its turn. */
const turnMillis = 10_000

const turns = new FairSemaphore<string>(listsAtOnce)

/**
 * Reads a list when it is its turn. Where any name makes a user, those of an address take turns
 * with each other.
 */
export const inTurn = <A, E, R>(
  { caller, request }: Pick<Call, "caller" | "request">,
  list: Effect.Effect<A, E, R>
) => {
  const owner = caller!.verified ? caller!.user : request.address
  return turns.withPermitWithin(owner, turnMillis, list, Effect.fail(refuse("unavailable")))
}

const objects = Schema.Struct({ data: Schema.Array(ListedObject) })

export const listGet = operation({
  access: "caller",
  negotiates: true,
  exposes: [
    "Next-Page",
    "Total-Records",
    "Total-Objects",
    "Last-Modified",
    "ETag",
    "Cache-Control",
    "Expires",
    "Pragma"
  ],
  read: readQuery(false),
  run: Effect.fnUntraced(
    function* ({ listing, preconditions }: ListInput, call: Call) {
      const list = yield* listOf(call.caller!.user)
      // Parsing the largest list takes half of the time that one turn of the event loop may take.
      yield* Effect.yieldNow
      const target = { timestamp: list.lastModified, exists: true }
      yield* checked(unmet(preconditions, target, "read"))
      return yield* responseOf(list, listing, call)
    },
    (list, _, call) => inTurn(call, list)
  ),
  doc: {
    summary: "List the caller's subscriptions, newest first",
    parameters: ["listing", "fields", "preconditions"],
    responses: { 200: objects, 304: null },
    errors: [400, 406, 412, 413]
  }
})

/** The response to GET and HEAD. HEAD only counts, unless it needs the URL of the next page. */
const responseOf = Effect.fnUntraced(function* (
  list: SubscriptionList,
  listing: Listing,
  call: Call
) {
  const live = yield* matching(rowsOf(list), listing)
  const removed = listing.withTombstones ? yield* matching(tombstoneRowsOf(list), listing) : []
  const rows = [...live, ...removed]
  const limit = yield* limitOf(listing, limitMax)
  const isHead = call.request.method === "HEAD"
  const isCounted = isHead && listing.token === undefined && rows.length <= limit
  const page = isCounted ? { more: false, shown: rows } : yield* pageOf(rows, listing, limit)
  const headers = {
    ...stamp(list.lastModified),
    "Total-Records": String(live.length),
    "Total-Objects": String(live.length),
    ...noStore,
    ...(yield* nextHeader(call, listing, page, limit)),
    ...deprecation(listing, call)
  }
  if (isHead) return jsonResponse(undefined, headers)
  const texts = yield* mapInTurns(page.shown, (row) => textOf(row, listing.fields))
  return jsonResponse(`{"data":[${texts.join()}]}`, headers)
})

export const listDelete = operation({
  access: "caller",
  negotiates: true,
  exposes: ["Last-Modified", "ETag", "Next-Page", "Total-Records"],
  read: readQuery(true),
  run: Effect.fnUntraced(function* ({ listing, preconditions }, call) {
    const limit = yield* limitOf(listing, limitMax)
    const { id: user } = call.user!
    // Decided again where another request was faster: then the token is spent already.
    const spent = yield* Effect.cached(listing.token ? spendToken(listing.token) : Effect.void)
    return yield* changeList(
      call,
      Effect.fnUntraced(function* (list, now) {
        const target = { timestamp: list.lastModified, exists: true }
        yield* checked(unmet(preconditions, target, "write"))
        yield* spent
        const selected = yield* matching(rowsOf(list), listing)
        const page = yield* pageOf(selected, listing, limit)
        const first = nextTimestamp(list, now)
        const removed = page.shown.map(({ own }, i) => ({
          id: own["id"] as string,
          lastModified: first + i
        }))
        const response = ok(
          {
            data: removed.map(({ id, lastModified }) =>
              project({ own: tombstone(id, lastModified), data: {} }, listing.fields)
            )
          },
          {
            ...stamp(removed.at(-1)?.lastModified ?? list.lastModified),
            "Total-Records": String(selected.length),
            ...(yield* nextHeader(call, listing, page, limit)),
            ...deprecation(listing, call)
          }
        )
        // Ended subscriptions are on no page: the last one names them.
        const ended = page.more ? [] : yield* endedIn(list, listing)
        const named = [...removed, ...ended]
        if (named.length === 0) return unchanged(response)
        return changed({ type: "subscription.delete", user, removed: named }, response)
      })
    )
  }),
  doc: {
    summary: "Remove the caller's subscriptions: all of them, or those that match",
    parameters: ["listing", "preconditions"],
    responses: { 200: Schema.Struct({ data: Schema.Array(Tombstone) }) },
    errors: [400, 406, 409, 412, 413, 507]
  }
})

export const userListDelete = forUserInPath(
  listDelete,
  "Remove the subscriptions of a user, as when they log out everywhere"
)

/**
 * The ended subscriptions that match and that a secret would renew: a browser that is removed must
 * not come back by itself. Filters see only their ids and timestamps, as tombstones have no more.
 */
const endedIn = Effect.fnUntraced(function* (list: SubscriptionList, listing: Listing) {
  const ids = new Set((yield* matching(tombstoneRowsOf(list), listing)).map(({ own }) => own["id"]))
  return renewables(list.tombstones).filter(({ id }) => ids.has(id))
})

/** The header that leads to the next page. */
const nextHeader = (call: Call, listing: Listing, { more, shown }: Page, limit: number) => {
  const last = more ? shown.at(-1) : undefined
  return nextPage(call, {
    path: `${ownerPath(call)}/subscriptions`,
    place: last && placeOf(last, listing.sort),
    limit
  })
}

const deprecation = ({ deprecated }: Listing, { rootUrl }: Call): Record<string, string> =>
  deprecated
    ? {
        Alert: JSON.stringify({
          code: "soft-eol",
          message: "_to is deprecated, use _before",
          url: `${rootUrl}/__api__`
        })
      }
    : {}
