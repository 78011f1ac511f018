// GET /broadcasts and GET /channels/{id}/broadcasts: the broadcasts that the caller may see, the
// newest first, in pages.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { makeRoom } from "#basics/bounded.ts"
import { makeShares } from "#basics/limits.ts"
import { type Listed, listBroadcasts, type Selection } from "#broadcasts/list.ts"
import type { Origin } from "#broadcasts/state.ts"
import { FairSemaphore } from "#clock/fair-semaphore.ts"
import { publisherOf } from "#domain/broadcast.ts"
import { BroadcastState } from "#domain/broadcast-state.ts"
import type { Caller } from "#identity/identity.ts"
import { channelToken } from "#streams/tokens.ts"
import type { Call } from "../http/request.ts"
import { type ErrorDetail, ok, refuse } from "../http/response.ts"
import { noStore } from "../http/response-headers.ts"
import { limitOf, nextPage } from "../listing/page.ts"
import { type ListInput, readPages, singles } from "../listing/query.ts"
import { operation } from "../operation.ts"
import { channelIdOf, hasRights, isOperator, maySend } from "../rights.ts"
import { isTest, maySee } from "./broadcast.ts"
import { BroadcastObject, viewOf } from "./view.ts"

/** Most broadcasts of a page: 13 ms among 100,000; twice as many 28 (measured). */
const broadcastsMax = 50
/** Lists that are read at once: each holds 100 broadcasts or changes of 32 KiB at a time. */
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
}

const read = Effect.fnUntraced(function* (call: Call, errors: Array<ErrorDetail>) {
  const input = yield* readPages(call, errors)
  return { ...input, wanted: wantedOf(call.query, errors) } satisfies Input
})

const doc = {
  summary: "List the broadcasts to a channel, the newest first",
  parameters: ["pages", "broadcasts"],
  responses: { 200: Schema.Struct({ data: Schema.Array(BroadcastObject) }) },
  errors: [400, 413]
}

export const channelBroadcastsGet = operation({
  access: "viewer",
  exposes: ["Next-Page"],
  read,
  run: Effect.fnUntraced(function* (input, call) {
    const id = yield* channelIdOf(call.params)
    const path = `/channels/${encodeURIComponent(id)}/broadcasts`
    return yield* page(input, call, path, {
      channel: channelToken(id),
      isShown: () => Effect.succeed(true)
    })
  }),
  doc
})

export const broadcastsGet = operation({
  access: "principal",
  exposes: ["Next-Page"],
  read,
  run: (input, call) =>
    page(input, call, "/broadcasts", { channel: undefined, isShown: makeMaySee(call.caller!) }),
  doc: { ...doc, summary: "List the broadcasts that the caller may see, the newest first" }
})

/** The page of a list. */
const page = Effect.fn("Gateway.listBroadcasts")(function* <E, R>(
  { listing, wanted }: Input,
  call: Call,
  path: string,
  of: Pick<Selection<E, R>, "channel" | "isShown">
) {
  const limit = yield* limitOf(listing, broadcastsMax)
  const behind = listing.token?.last_object["id"]
  const list = listBroadcasts({
    ...of,
    ...wanted,
    limit,
    behind: behind === undefined ? undefined : Number(behind)
  })
  const { next, rows } = yield* of.channel === undefined
    ? inTurnOfAny(call, list)
    : inTurn(call.caller!.user, list)
  noteReader(call.caller!, rows)
  const data = yield* Effect.forEach(rows, (row) => viewOf(row.origin, row.standing))
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

/** `maySee` for many broadcasts of one request, which ask for the same few rights. */
const makeMaySee = (caller: Caller) => {
  const known = new Map<string, boolean>()
  const may = Effect.fnUntraced(function* (...[who, channels, users]: Parameters<typeof maySend>) {
    const key = JSON.stringify([channels, users])
    const isAllowed = known.get(key) ?? (yield* maySend(who, channels, users))
    known.set(key, isAllowed)
    return isAllowed
  })
  return (origin: Origin) => maySee(caller, origin, may)
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
const inTurnOfAny = Effect.fnUntraced(function* <A, E, R>(
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
    isTest(origin) && publisherOf(origin.source, origin.stored.header) === id
  if (readers.has(user) || rows.every(isOwnTest)) return
  makeRoom(readers, readersMax)
  readers.set(user, true)
}
