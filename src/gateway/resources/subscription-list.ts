// GET and DELETE /subscriptions: the subscriptions of the caller, filtered, sorted and in pages.
import { Clock, Effect, Schema } from "effect"
import { emptyList, nextTimestamp, type SubscriptionList } from "#domain/subscription.ts"
import { Buckets } from "#log/bucket.ts"
import { keys } from "#streams/buckets.ts"
import { type Call, ok } from "../ask.ts"
import { checkNoBody } from "../body.ts"
import { notKept } from "../decorate.ts"
import { type Fault, refuse } from "../faults.ts"
import { project } from "../listing/fields.ts"
import {
  effectiveLimit,
  type Listing,
  pageOf,
  queryPairs,
  readListing,
  select
} from "../listing/listing.ts"
import { invalidToken, isGenuine, issueToken, spendToken } from "../listing/page-token.ts"
import { placeOf } from "../listing/sort.ts"
import type { JsonObject } from "../listing/value.ts"
import type { Operation } from "../operation.ts"
import {
  notModified,
  type Preconditions,
  readPreconditions,
  stamp,
  violated
} from "../preconditions.ts"
import { GatewaySettings } from "../settings.ts"
import {
  ListedObject,
  objectsOf,
  Tombstone,
  tombstone,
  tombstonesOf
} from "../subscription-view.ts"
import { changeList } from "../write.ts"

interface ListInput {
  readonly listing: Listing
  readonly preconditions: Preconditions
}

const readList = Effect.fnUntraced(function* ({ ask, caller, query }: Call, faults: Array<Fault>) {
  const preconditions = readPreconditions(ask, faults)
  const pairs = queryPairs(query)
  if (pairs === undefined) return yield* refuse("undecodable")
  const listing = readListing(pairs, yield* Clock.currentTimeMillis, faults)
  if (listing.token !== undefined && !(yield* isGenuine(listing.token, caller!.user)))
    faults.push(invalidToken)
  yield* checkNoBody(ask, faults)
  return { listing, preconditions }
})

/** The absolute URL of the next page: every parameter as it was but the limit and the token. */
const nextPage = Effect.fnUntraced(function* (
  call: Call,
  listing: Listing,
  shown: ReadonlyArray<JsonObject>,
  limit: number
) {
  const offset = (listing.token?.offset ?? 0) + shown.length
  const last = placeOf(shown.at(-1) ?? {}, listing.sort)
  const token = yield* issueToken(call.caller!.user, last, offset)
  const kept = call.query
    .split("&")
    .filter((pair) => pair !== "" && !/^(_limit|_token)(=|$)/.test(pair))
  return `${call.rootUrl}/subscriptions?${[...kept, `_limit=${limit}`, `_token=${token}`].join("&")}`
})

const limitOf = Effect.fnUntraced(function* ({ limit }: Listing) {
  const { paginateBy, storageMaxFetchSize } = yield* GatewaySettings
  return effectiveLimit(limit, paginateBy, storageMaxFetchSize)
})

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

const objects = Schema.Struct({ data: Schema.Array(ListedObject) })

export const listGet: Operation<ListInput> = {
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
  read: readList,
  run: Effect.fnUntraced(function* ({ listing, preconditions }, call) {
    const buckets = yield* Buckets
    const entry = yield* buckets.get("subscriptions", keys.subscriptions(call.caller!.user))
    const list = (entry?.value as SubscriptionList | undefined) ?? emptyList
    const target = { timestamp: list.lastModified, exists: true }
    const refused = notModified(preconditions, target) ?? violated(preconditions, target)
    if (refused !== undefined) return yield* refused
    const live = objectsOf(list)
    const total = String(select(live, listing).length)
    const limit = yield* limitOf(listing)
    const { more, shown } = pageOf(
      select(listing.withTombstones ? [...live, ...tombstonesOf(list)] : live, listing),
      listing,
      limit
    )
    return ok(
      { data: shown.map((object) => project(object, listing.fields)) },
      {
        ...stamp(list.lastModified),
        "Total-Records": total,
        "Total-Objects": total,
        ...notKept,
        ...(more ? { "Next-Page": yield* nextPage(call, listing, shown, limit) } : {}),
        ...deprecation(listing, call)
      }
    )
  }),
  doc: {
    summary: "List the caller's subscriptions, newest first",
    parameters: ["listing", "preconditions"],
    answers: { 200: objects, 304: null },
    faults: [400, 406, 412, 413]
  }
}

export const listDelete: Operation<ListInput> = {
  access: "caller",
  negotiates: true,
  exposes: ["Last-Modified", "ETag", "Next-Page", "Total-Records"],
  read: readList,
  run: Effect.fnUntraced(function* ({ listing, preconditions }, call) {
    if (listing.token !== undefined) yield* spendToken(listing.token)
    const limit = yield* limitOf(listing)
    const { id: user, user: subject } = call.caller!
    return yield* changeList(
      subject,
      Effect.fnUntraced(function* (list, now) {
        const refused = violated(preconditions, { timestamp: list.lastModified, exists: true })
        if (refused !== undefined) return yield* refused
        const selected = select(objectsOf(list), listing)
        const { more, shown } = pageOf(selected, listing, limit)
        const first = nextTimestamp(list, now)
        const removed = shown.map((object, i) => ({
          id: object["id"] as string,
          lastModified: first + i
        }))
        const answer = ok(
          {
            data: removed.map(({ id, lastModified }) =>
              project(tombstone(id, lastModified), listing.fields)
            )
          },
          {
            ...stamp(removed.at(-1)?.lastModified ?? list.lastModified),
            "Total-Records": String(selected.length),
            ...(more ? { "Next-Page": yield* nextPage(call, listing, shown, limit) } : {}),
            ...deprecation(listing, call)
          }
        )
        if (removed.length === 0) return { _tag: "Unchanged" as const, answer }
        return {
          _tag: "Change" as const,
          command: { type: "subscription.delete/1" as const, user, removed },
          answer: () => answer
        }
      })
    )
  }),
  doc: {
    summary: "Remove the caller's subscriptions: all of them, or those that match",
    parameters: ["listing", "preconditions"],
    answers: { 200: Schema.Struct({ data: Schema.Array(Tombstone) }) },
    faults: [400, 406, 409, 412, 413, 507]
  }
}
