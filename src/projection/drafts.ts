// Folds drafts into the indexes of their authors, and deletes from LOG what a later form replaced
// or what has ended: LOG keeps one message of a draft, and none of a draft that is over.
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import { type Drafts, endDraft, formIn, noDrafts, storeDraft } from "#domain/draft.ts"
import type { NatsUnavailable } from "#nats/connection/errors.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { eachEntry } from "#nats/kv/entries.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { type EntryKey, keys } from "#streams/buckets.ts"
import { filters, parseDraft, subjects } from "#streams/subjects.ts"
import type { UserToken } from "#streams/tokens.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { deletionsMax, type Sets, type Superseded } from "./sets.ts"
import type { Step } from "./step.ts"

const deletionsAtOnce = 8
/** Messages of one draft that a look reads at a time. */
const formsMax = 100

/** Changes the index of an author, and notes which messages are over. */
export const foldIntoDrafts = (
  sets: Sets,
  { command, id, key, stored: { seq } }: Extract<Step, { readonly kind: "draft" }>
): void => {
  const before = sets.drafts.get(key) ?? noDrafts
  const form = formIn(before, id)
  const after =
    command.type === "draft.put"
      ? storeDraft(before, id, seq)
      : endDraft(before, id, command.type === "draft.delete" ? seq : command.form)
  const left = formIn(after, id)
  if (form !== undefined && left !== form) note(sets, { seq: form, after: seq })
  // A deletion has nothing to say when its draft is gone from LOG, too. An index that an earlier
  // term wrote may have a later form.
  if (command.type !== "published" && left !== seq) note(sets, { seq, after: left ?? seq })
  if (after !== before) set(sets, key, after, seq)
}

/** An author without drafts has no entry: a rebuild from LOG knows nothing of such a one. */
const set = ({ drafts }: Sets, key: EntryKey<"drafts">, index: Drafts, seq: number): void => {
  // A key that was removed in the same batch may have left the cache.
  drafts.loadAbsent(key)
  if (index.drafts.length === 0) drafts.remove(key)
  else drafts.set(key, index, seq)
}

/** Notes a message of LOG that is deleted once no later term applies it again. */
export const note = (sets: Sets, one: Superseded): void => {
  const { isLive, superseded } = sets
  if (!isLive) return
  if (superseded.length < deletionsMax) superseded.push(one)
  else sets.areMoreDeletions = true
}

/** Deletes a message of LOG soon. */
const offer = Effect.fnUntraced(function* (sets: Sets, seq: number) {
  if (!(yield* Queue.offer(sets.deletions, seq))) sets.areMoreDeletions = true
})

/**
 * Deletes what no later term applies again, after message `saved`, and forgets drafts that LOG
 * lacks. The messages themselves are deleted meanwhile: without a permission each takes 5 s to
 * fail.
 */
export const forgetDrafts = Effect.fnUntraced(function* (sets: Sets, saved: number) {
  const { drafts, lostDrafts, superseded } = sets
  sets.saved = saved
  const due = superseded.findIndex(({ after }) => after > saved)
  for (const { seq } of superseded.splice(0, due === -1 ? superseded.length : due))
    yield* offer(sets, seq)
  if (lostDrafts.size === 0) return
  const lost = [...lostDrafts]
  lostDrafts.clear()
  yield* drafts.load(lost.map(([, { user }]) => keys.drafts(user)))
  for (const [id, { seq, user }] of lost) {
    const key = keys.drafts(user)
    const index = drafts.get(key)
    if (index !== undefined && formIn(index, id) === seq)
      set(sets, key, endDraft(index, id, seq), saved + 1)
  }
  yield* drafts.flush
})

/** Deletes messages as they become due, until the scope closes. A look finds what fails. */
export const deleteMessages = Effect.fnUntraced(function* (sets: Sets) {
  const { deletions, log } = sets
  const warn = makeRateLimitedLog(
    "messages of drafts, channels or users that are over could not be deleted from LOG: it is " +
      "tried again each hour " +
      "(NATS must permit $JS.API.STREAM.MSG.DELETE.BELLCAST_LOG)"
  )
  const one = Effect.flatMap(Queue.take(deletions), (seq) =>
    Effect.catch(log.remove(seq), (err) => {
      sets.areMoreDeletions = true
      return warn({ seq, err })
    })
  )
  yield* Effect.forEach(Array.from({ length: deletionsAtOnce }), () => Effect.forever(one), {
    concurrency: "unbounded",
    discard: true
  })
})

/**
 * Looks for messages of drafts that an earlier term did not delete, or that a killed nats-server
 * brought back, and for drafts of which LOG has nothing. Reads all indexes, and the names of all
 * subjects of drafts.
 */
export const findSuperseded = Effect.fnUntraced(function* (sets: Sets) {
  const { log, lostDrafts, saved: upTo } = sets
  sets.areMoreDeletions = false
  const known = new Map<string, { readonly user: UserToken; readonly seq: number }>()
  yield* eachEntry("drafts", (user, { drafts }) => {
    for (const [id, seq] of drafts) known.set(id, { user: user as UserToken, seq })
  })
  // After the indexes: a draft that begins meanwhile is in this one alone, and is not lost.
  const counts = yield* log.counts(filters.drafts)
  for (const [id, form] of known)
    if (!counts.has(subjects.draft(id)) && form.seq <= upTo && lostDrafts.size < deletionsMax)
      lostDrafts.set(id, form)
  for (const [subject, count] of counts) {
    const id = parseDraft(subject)
    if (count === 1 && id !== undefined && known.has(id)) continue
    for (const seq of yield* deadOn(subject, upTo)) yield* offer(sets, seq)
  }
})

/** The messages on a subject, up to a sequence, that no index has. */
const deadOn = Effect.fnUntraced(function* (
  subject: string,
  upTo: number
): Effect.fn.Return<ReadonlyArray<number>, NatsUnavailable, EventLog | Buckets> {
  const { following } = yield* EventLog
  const { get } = yield* Buckets
  const id = parseDraft(subject) ?? ""
  const dead: Array<number> = []
  for (const { message, seq } of yield* following("log", subject, { from: 1, limit: formsMax })) {
    if (seq > upTo) break
    const isPut = message.type === "draft.put"
    // Read after the message: all that was applied to it is in this index.
    const index = isPut ? (yield* get("drafts", keys.drafts(message.user)))?.value : undefined
    if (index === undefined || formIn(index, id) !== seq) dead.push(seq)
  }
  return dead
})
