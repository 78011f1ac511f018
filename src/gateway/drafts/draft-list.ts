// GET /drafts: the drafts that the caller may see, the newest change first, in pages. Own ones come
// from the caller's index; those of others from LOG, which is read backwards: it has one message of
// each draft.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type Drafts, formIn, noDrafts } from "#domain/draft.ts"
import { Identity, type User } from "#identity/identity.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { filters, subjects } from "#streams/subjects.ts"
import type { UserToken } from "#streams/tokens.ts"
import { inTurnOfAny } from "../broadcasts/broadcast-list.ts"
import type { Call } from "../http/request.ts"
import { ok } from "../http/response.ts"
import { noStore } from "../http/response-headers.ts"
import { limitOf, nextPage } from "../listing/page.ts"
import { readPages, singles } from "../listing/query.ts"
import { recordLook } from "../named-user.ts"
import { operation } from "../operation.ts"
import { remembering } from "../rights.ts"
import { type Draft, DraftObject, draftIn, draftsOf, sightOf, viewOf } from "./form.ts"

/** Most drafts of a page: with 28 KiB each it fits into a message of NATS (1 MiB). */
const pageMax = 25
/** Messages of LOG that are read at a time: 1.6 MB at most. */
const readAtOnce = 50
/** Messages of LOG that one request looks at. A client goes on with the next page. */
const lookedAtMax = 200
const readsAtOnce = 16

interface Seen {
  readonly draft: Draft
  readonly sight: "editor" | "operator"
}

export const draftsGet = operation({
  access: "principal",
  exposes: ["Next-Page"],
  read: Effect.fnUntraced(function* (call, errors) {
    const { listing } = yield* readPages(call, errors)
    return { listing, author: singles(call.query, errors).text("author") }
  }),
  run: Effect.fnUntraced(function* ({ author, listing }, call) {
    const limit = yield* limitOf(listing, pageMax)
    const behind = listing.token?.last_object["seq"]
    const before = behind === undefined ? Number.MAX_SAFE_INTEGER : Number(behind)
    const page = yield* pageOf(call, { author, before, limit })
    const looks = new Set(
      page.seen.flatMap(({ draft, sight }) => (sight === "operator" ? draft.user : []))
    )
    yield* Effect.forEach(looks, (user) => recordLook(call, user), { concurrency: readsAtOnce })
    const place = page.next === undefined ? undefined : { seq: page.next }
    const data = page.seen.map(({ draft }) => viewOf(draft))
    return ok(
      { data },
      { ...noStore, ...(yield* nextPage(call, { path: "/drafts", place, limit })) }
    )
  }),
  doc: {
    summary: "List the drafts that the caller may see, the newest change first",
    parameters: ["pages", "drafts"],
    responses: { 200: Schema.Struct({ data: Schema.Array(DraftObject) }) },
    errors: [400, 413]
  }
})

interface Wanted {
  /** The id of the only author; undefined: any. */
  readonly author: string | undefined
  /** Sequence in LOG. */
  readonly before: number
  readonly limit: number
}

/** The drafts of a page, and the place behind it; undefined: nothing follows. */
const pageOf = Effect.fnUntraced(function* (call: Call, wanted: Wanted) {
  const { before, limit } = wanted
  const author = yield* authorOf(wanted, call)
  if (author !== undefined) {
    return yield* ofAuthor(author, call, before, limit)
  }
  const others = yield* inTurnOfAny(call, ofOthers(call, before, limit))
  const own = yield* ofAuthor(call.caller!.user, call, before, limit)
  const all = [...own.seen, ...others.seen].sort((a, b) => b.draft.seq - a.draft.seq)
  // Before the place where the look at either ended, more of them may be between those of the
  // other.
  const lookedTo = Math.max(others.lookedTo, own.next ?? 0)
  const known = all.filter(({ draft }) => draft.seq >= lookedTo)
  const seen = known.slice(0, limit)
  if (known.length > limit) return { seen, next: seen.at(-1)!.draft.seq }
  return { seen, next: lookedTo > 0 ? lookedTo : undefined }
})

/** The author whose drafts alone are wanted; undefined: those of all. Nobody has an unknown id. */
const authorOf = Effect.fnUntraced(function* ({ author }: Wanted, { caller }: Call) {
  if (author === undefined) return undefined
  if (author === caller!.id) return caller!.user
  const user: User | undefined = (yield* Identity).userOf(author)
  return user?.user ?? ("" as UserToken)
})

/** Some drafts of one author, by the author's index and from the leader. */
const ofAuthor = Effect.fnUntraced(function* (
  author: UserToken,
  { caller }: Call,
  before: number,
  limit: number
) {
  const log = yield* EventLog
  const index = author === "" ? noDrafts : ((yield* draftsOf(author)) ?? noDrafts)
  const rest = index.drafts.filter(([, seq]) => seq < before).reverse()
  const some = rest.slice(0, limit)
  const found = yield* Effect.forEach(some, ([id]) => log.last("log", subjects.draft(id)), {
    concurrency: readsAtOnce
  })
  const seen = yield* seenOf(
    found.flatMap((stored) => (stored === undefined ? [] : (draftIn(stored) ?? []))),
    caller!
  )
  return { seen, next: rest.length > some.length ? some.at(-1)![1] : undefined }
})

/** Drafts of others than the caller, from LOG. `lookedTo`: no message before it was looked at. */
const ofOthers = Effect.fnUntraced(function* ({ caller }: Call, before: number, limit: number) {
  const log = yield* EventLog
  const indexOf = makeIndexes()
  const seen: Array<Seen> = []
  let lookedTo = before
  for (let looked = 0; looked < lookedAtMax && seen.length < limit; looked += readAtOnce) {
    const some = yield* log.newest("log", filters.drafts, { before: lookedTo, limit: readAtOnce })
    const drafts = some.flatMap((stored) => draftIn(stored) ?? [])
    const others = drafts.filter(({ user }) => user !== caller!.user)
    const current = yield* Effect.filter(
      others,
      ({ id, seq, user }) => Effect.map(indexOf(user), (index) => formIn(index, id) === seq),
      { concurrency: readsAtOnce }
    )
    seen.push(...(yield* seenOf(current, caller!)))
    lookedTo = some.length < readAtOnce ? 0 : some.at(-1)!.seq
    if (lookedTo === 0) break
  }
  return { seen, lookedTo }
})

/** The indexes of authors, each read once for a request. */
const makeIndexes = () => {
  const known = new Map<UserToken, Drafts>()
  return Effect.fnUntraced(function* (author: UserToken) {
    const index = known.get(author) ?? (yield* draftsOf(author)) ?? noDrafts
    known.set(author, index)
    return index
  })
}

const seenOf = Effect.fnUntraced(function* (
  drafts: ReadonlyArray<Draft>,
  caller: NonNullable<Call["caller"]>
) {
  const may = remembering()
  const seen: Array<Seen> = []
  for (const draft of drafts) {
    const sight = yield* sightOf(caller, draft, may)
    if (sight !== undefined) seen.push({ draft, sight })
  }
  return seen
})
