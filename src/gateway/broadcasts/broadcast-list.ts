// GET /broadcasts and GET /channels/{id}/broadcasts: the broadcasts that the caller may see, the
// newest first, in pages.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { makeRoom } from "#basics/bounded.ts"
import { makeShares } from "#basics/limits.ts"
import { type Listed, listBroadcasts, type Selection } from "#broadcasts/list.ts"
import { isSubscriptionTest, isTest } from "#broadcasts/whole-broadcast.ts"
import { FairSemaphore } from "#clock/fair-semaphore.ts"
import { publisherOf } from "#domain/broadcast.ts"
import { BroadcastState } from "#domain/broadcast-state.ts"
import type { Caller } from "#identity/identity.ts"
import { type ChannelToken, channelToken } from "#streams/tokens.ts"
import type { Call } from "../http/request.ts"
import { type ErrorDetail, ok, refuse } from "../http/response.ts"
import { noStore } from "../http/response-headers.ts"
import { limitOf, nextPage } from "../listing/page.ts"
import { type ListInput, readPages, singles } from "../listing/query.ts"
import { recordLookAtBroadcasts } from "../named-user.ts"
import { operation } from "../operation.ts"
import { channelIdOf, hasRights, isOperator } from "../rights.ts"
import { ListedBroadcast, makeSights, rowFor } from "./content.ts"
import { BroadcastObject } from "./view.ts"

/** Most broadcasts of a page: 13 ms among 100,000; twice as many 28 (measured). */
const broadcastsMax = 50
/** Lists that are read at once: each holds 200 broadcasts or changes of 32 KiB at a time. */
export const listsAtOnce = 2
/** Lists of a caller, and of all, that are read or wait: 256 take some 4 s, two at a time. */
export const listsMax = { ofOne: 32, ofAll: 256 }
/** How long a list waits for its turn. */
const turnMillis = 10_000
/** Most callers who are known to see broadcasts of others, in 1 MB. */
const readersMax = 10_000

type Wanted = Pick<Selection<never, never>, "publisher" | "state" | "since" | "before">

interface Input extends ListInput {
  readonly wanted: Wanted
  /** With tests, which only operators see unasked. */
  readonly withTests: boolean
}

const read = Effect.fnUntraced(function* (call: Call, errors: Array<ErrorDetail>) {
  const input = yield* readPages(call, errors)
  const { oneOf } = singles(call.query, errors)
  const withTests = oneOf("test", ["true"]) !== undefined
  return { ...input, wanted: wantedOf(call.query, errors), withTests } satisfies Input
})

const doc = {
  summary: "List the broadcasts to a channel, the newest first",
  parameters: ["pages", "broadcasts"],
  responses: { 200: Schema.Struct({ data: Schema.Array(ListedBroadcast) }) },
  errors: [400, 413]
}

export const channelBroadcastsGet = operation({
  access: "viewer",
  exposes: ["Next-Page"],
  read,
  run: Effect.fnUntraced(function* (input, call) {
    const id = yield* channelIdOf(call.params)
    const path = `/channels/${encodeURIComponent(id)}/broadcasts`
    return yield* page(input, call, path, channelToken(id))
  }),
  doc
})

export const broadcastsGet = operation({
  access: "principal",
  exposes: ["Next-Page"],
  read,
  run: (input, call) => page(input, call, "/broadcasts", undefined),
  doc: {
    ...doc,
    summary: "List the broadcasts that the caller may see, the newest first",
    responses: { 200: Schema.Struct({ data: Schema.Array(BroadcastObject) }) }
  }
})

/** The page of a list. */
const page = Effect.fn("Gateway.listBroadcasts")(function* (
  { listing, wanted, withTests }: Input,
  call: Call,
  path: string,
  channel: ChannelToken | undefined
) {
  const { found, maySee } = makeSights(call.caller!)
  const showsTests = withTests || (yield* isOperator(call.caller!))
  // The publisher of what is only glanced at is not shown, and is nothing to select by.
  const mayGlance = channel !== undefined && wanted.publisher === undefined
  const limit = yield* limitOf(listing, broadcastsMax)
  const behind = listing.token?.last_object["id"]
  const list = listBroadcasts({
    ...wanted,
    channel,
    withNamed: true,
    isShown: (origin) =>
      showsTests || !isTest(origin.stored)
        ? Effect.map(maySee(origin), (isSeen) => isSeen || mayGlance)
        : Effect.succeed(false),
    limit,
    behind: behind === undefined ? undefined : Number(behind)
  })
  const { next, rows } = yield* channel === undefined
    ? inTurnOfAny(call, list)
    : inTurn(call.caller!.user, list)
  noteReader(call.caller!, rows)
  const data = yield* Effect.forEach(rows, (row) => rowFor(row, found.get(row.origin.stored.seq)))
  const ids = rows.map(({ origin }) => origin.stored.seq)
  yield* recordLookAtBroadcasts(
    call,
    ids.filter((id) => found.get(id) === "look")
  )
  const place = next === undefined ? undefined : { id: next }
  const shown = { path, place, limit }
  return ok({ data }, { ...noStore, ...(yield* nextPage(call, shown)) })
})

const wantedOf = (query: string, errors: Array<ErrorDetail>): Wanted => {
  const { oneOf, text, time } = singles(query, errors)
  return {
    publisher: text("publisher"),
    state: oneOf("state", BroadcastState.literals),
    since: time("since"),
    before: time("before")
  }
}

const makeTurns = (size: number) => {
  const semaphore = new FairSemaphore<string>(size)
  const queued = makeShares(listsMax.ofOne, listsMax.ofAll)
  return <A, E, R>(owner: string, list: Effect.Effect<A, E, R>) =>
    Effect.suspend(() => {
      if (queued.of(owner) >= listsMax.ofOne) return refuse("too-many-at-once")
      if (!queued.take(owner, 1)) return refuse("unavailable")
      return semaphore
        .withPermitWithin(owner, turnMillis, list, Effect.fail(refuse("unavailable")))
        .pipe(Effect.ensuring(Effect.sync(() => queued.give(owner, 1))))
    })
}

const turns = {
  ofReaders: makeTurns(listsAtOnce),
  /**
   * Of callers who see their own broadcasts alone, as far as is known. Any name makes one with some
   * policies, and each list reads 200 broadcasts to show none: nobody else waits for them.
   */
  ofOthers: makeTurns(1)
}

/** Reads a list when it is the turn of `user`, who may see what the list shows. */
export const inTurn = <A, E, R>(user: string, list: Effect.Effect<A, E, R>) =>
  turns.ofReaders(user, list)

/** As `inTurn`, for a caller who may see nothing but what he published. */
export const inTurnOfAny = Effect.fnUntraced(function* <A, E, R>(
  { caller, request }: Call,
  list: Effect.Effect<A, E, R>
) {
  const { user, verified } = caller!
  const isReader = readers.has(user) || (yield* isOperator(caller!)) || (yield* hasRights(caller!))
  if (isReader) return yield* inTurn(user, list)
  return yield* turns.ofOthers(verified ? user : request.address, list)
})

/**
 * Callers to whom a list showed more than tests of their own subscriptions, which anybody may send:
 * grants are known by their channel only.
 */
const readers = new Map<string, true>()

const noteReader = ({ id, user }: Caller, rows: ReadonlyArray<Listed>) => {
  const isOwnTest = ({ origin }: Listed) =>
    isSubscriptionTest(origin.stored) && publisherOf(origin.source, origin.stored.header) === id
  if (readers.has(user) || rows.every(isOwnTest)) return
  makeRoom(readers, readersMax)
  readers.set(user, true)
}
