// GET /broadcasts and GET /channels/{id}/broadcasts: the broadcasts that the caller may see, the
// newest first, in pages.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import { BroadcastState } from "#domain/broadcast-state.ts"
import type { Caller } from "#identity/identity.ts"
import { listBroadcasts, type Selection } from "#nats/broadcasts/list.ts"
import type { Origin } from "#nats/broadcasts/state.ts"
import { channelToken } from "#streams/tokens.ts"
import { channelIdOf } from "../channels/id.ts"
import { maySend } from "../channels/publishers.ts"
import type { ErrorDetail } from "../http/errors.ts"
import { type Call, ok } from "../http/request.ts"
import { noStore } from "../http/response-headers.ts"
import { limitOf, nextPage } from "../listing/next-page.ts"
import { type ListInput, readPages } from "../listing/read-query.ts"
import { singles } from "../listing/singles.ts"
import type { Operation } from "../operation.ts"
import { maySee } from "./broadcast.ts"
import { BroadcastObject, viewOf } from "./view.ts"

/** Most broadcasts of a page: 13 ms among 100,000; twice as many 28 (measured). */
const broadcastsMax = 50
/** Lists that are read at once: each may read 200 broadcasts and 1,000 changes of 32 KiB. */
export const listsAtOnce = Semaphore.makeUnsafe(2)

type Wanted = Pick<Selection<never, never>, "publisher" | "state" | "since" | "before">

interface Input extends ListInput {
  readonly wanted: Wanted
}

const wantedOf = (query: string, errors: Array<ErrorDetail>): Wanted => {
  const { oneOf, text, time } = singles(query, errors)
  return {
    publisher: text("publisher"),
    state: oneOf("state", BroadcastState.literals),
    since: time("since"),
    before: time("before")
  }
}

const read = Effect.fnUntraced(function* (call: Call, errors: Array<ErrorDetail>) {
  const input = yield* readPages(call, errors)
  return { ...input, wanted: wantedOf(call.query, errors) } satisfies Input
})

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

/** The page of a list. */
const page = Effect.fnUntraced(function* <E, R>(
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
  const { next, rows } = yield* listsAtOnce.withPermit(list)
  const data = yield* Effect.forEach(rows, (row) => viewOf(row.origin, row.standing))
  const place = next === undefined ? undefined : { id: next }
  const shown = { path, place, limit }
  return ok({ data }, { ...noStore, ...(yield* nextPage(call, shown)) })
})

const doc = {
  summary: "List the broadcasts to a channel, the newest first",
  parameters: ["pages", "broadcasts"],
  responses: { 200: Schema.Struct({ data: Schema.Array(BroadcastObject) }) },
  errors: [400, 413]
}

export const channelBroadcastsGet: Operation<Input> = {
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
}

export const broadcastsGet: Operation<Input> = {
  access: "principal",
  exposes: ["Next-Page"],
  read,
  run: (input, call) =>
    page(input, call, "/broadcasts", { channel: undefined, isShown: makeMaySee(call.caller!) }),
  doc: { ...doc, summary: "List the broadcasts that the caller may see, the newest first" }
}
