// Deletes old messages of LOG that nothing rests on any more, in small steps, while the term of the
// projector lasts. A step notes what it deletes before it begins, so that a later term ends a step
// that a crash cut short. Where nothing is due, a look reads the place and one message.
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { monotonicMillis } from "#clock/clocks.ts"
import { endOfHistory } from "#domain/history.ts"
import { withoutEnd } from "#domain/subscription/owners.ts"
import { emptyList } from "#domain/subscription/subscription.ts"
import { withoutTombstones } from "#domain/subscription/tombstone.ts"
import { HistoryDays, readHistoryPlace, writeHistoryPlace } from "#history/place.ts"
import { type Forgotten, type Unneeded, unneededWith } from "#history/unneeded.ts"
import { streamState } from "#nats/admin/maintenance.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { readServerTime } from "#nats/watch/server-time.ts"
import { isFull } from "#nats/watch/space.ts"
import { keys } from "#streams/buckets.ts"
import { streams } from "#streams/index.ts"
import { subjects } from "#streams/subjects.ts"
import { logMessageDeleted } from "#telemetry/nats-metrics.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { keepBegins, keepSums } from "./channel-sums.ts"
import type { Sets } from "./sets.ts"

/** Between two looks. */
const lookMillis = 60 * 60_000
/** Messages that a step looks at. */
const stepMax = 200
/** After so many that go a step ends: their sequences are in one entry, of 64 KiB at most. */
const deletingMax = 1_000
/** Messages that are deleted between two pauses: publishers append meanwhile. */
const deletedAtOnce = 8
const pause = "25 millis"
/** From this share of its bytes on, LOG keeps the shortest history only. */
const fullShare = 0.8

/** Looks for old messages that nothing rests on, until the scope closes. */
export const trimHistory = Effect.fnUntraced(function* (sets: Sets) {
  const warn = makeRateLimitedLog(
    "old messages could not be deleted from LOG: it is tried again in an hour " +
      "(NATS must permit $JS.API.STREAM.MSG.DELETE.BELLCAST_LOG)"
  )
  const look = trimAll(sets).pipe(Effect.catch((err) => warn({ err })))
  return yield* Effect.forever(Effect.andThen(look, Effect.sleep(lookMillis)))
})

/** Deletes all that is due now. */
export const trimAll = Effect.fnUntraced(function* (sets: Sets) {
  yield* finishStep
  const { shortest, usual } = yield* HistoryDays
  let deleted = yield* trimBefore(sets, usual, Effect.succeed(false))
  if (usual > shortest && !(yield* hasRoom)) {
    const shorter = yield* trimBefore(sets, shortest, hasRoom)
    if (shorter > 0)
      yield* Effect.logWarning(
        "LOG is more than 80 % full: it keeps a shorter history than the setting says",
        { deleted: shorter, setting: "BELLCAST_HISTORY_DAYS", daysMin: shortest }
      )
    deleted += shorter
  }
  if (deleted > 0) yield* Effect.logInfo("old messages of LOG were deleted", { deleted })
})

const hasRoom = Effect.map(
  streamState(streams.log),
  (state) => state === undefined || !isFull(state, fullShare)
)

/** Deletes what is older than so many days, until `isEnough`. Returns how many messages. */
const trimBefore = Effect.fnUntraced(function* <E, R>(
  sets: Sets,
  days: number,
  isEnough: Effect.Effect<boolean, E, R>
) {
  const { firstSince, following } = yield* EventLog
  const before = endOfHistory((yield* readServerTime).serverMillis, days)
  const first = yield* firstSince("log", before)
  // A later term may apply the messages after the checkpoint again.
  const upTo = Math.min(sets.saved, (first ?? Number.POSITIVE_INFINITY) - 1)
  let { historyFrom, historyUpTo } = yield* readHistoryPlace
  let deleted = 0
  while (historyUpTo < upTo && !(yield* isEnough)) {
    // NATS may end a batch early, by its bytes.
    const found = yield* following("log", ">", { from: historyUpTo + 1, limit: stepMax })
    const some = found.filter(({ seq }) => seq <= upTo)
    const { deleting, lookedUpTo } = yield* dueAmong(sets, some, before)
    historyUpTo = lookedUpTo ?? upTo
    if (deleting.length > 0) {
      // Also later messages of a subject may go, up to the end of the history.
      historyFrom = Math.max(historyFrom, before)
      yield* writeHistoryPlace({ deleting, historyFrom })
      yield* deleteAll(deleting)
    }
    yield* writeHistoryPlace({ historyUpTo, deleting: [] })
    deleted += deleting.length
    yield* Effect.sleep(pause)
  }
  return deleted
})

/**
 * Sequences to delete, in their order, and the last message that was looked at. The buckets have
 * lost before what they said, and LOG has what the counts and pushes of channels rest on.
 */
const dueAmong = Effect.fnUntraced(function* (
  sets: Sets,
  messages: ReadonlyArray<Stored>,
  before: number
) {
  const { lookedUpTo, unneeded } = yield* lookAt(messages, before)
  yield* forgetLater(
    sets,
    unneeded.flatMap(({ forgotten }) => forgotten ?? [])
  )
  yield* keepBegins(
    sets,
    unneeded.flatMap(({ counted }) => counted ?? [])
  )
  const areSummed = yield* keepSums(
    sets,
    unneeded.flatMap(({ summed }) => summed ?? [])
  )
  const going = unneeded.filter(({ summed }) => summed === undefined || areSummed(summed))
  const deleting = new Set(going.flatMap((each) => each.messages.map(({ seq }) => seq)))
  const again = going.at(-1) === unneeded.at(-1) ? going.at(-1)?.again : undefined
  return { deleting: [...deleting], lookedUpTo: again === undefined ? lookedUpTo : again - 1 }
})

/** The messages that go with some of these, and the last one that was looked at. */
const lookAt = Effect.fnUntraced(function* (messages: ReadonlyArray<Stored>, before: number) {
  const unneeded: Array<Unneeded> = []
  const due = new Set<number>()
  const seen = new Set<string>()
  let lookedUpTo: number | undefined
  for (const stored of messages) {
    if (due.size >= deletingMax || unneeded.at(-1)?.again !== undefined) break
    lookedUpTo = stored.seq
    if (stored.at >= before || due.has(stored.seq) || seen.has(stored.subject)) continue
    // All parts have one subject.
    if (stored.subject !== subjects.part) seen.add(stored.subject)
    const found = yield* unneededWith(stored, before)
    if (found === undefined) continue
    unneeded.push(found)
    for (const { seq } of found.messages) due.add(seq)
  }
  return { lookedUpTo, unneeded }
})

const deleteAll = Effect.fnUntraced(function* (sequences: ReadonlyArray<number>) {
  const log = yield* EventLog
  for (const [i, seq] of sequences.entries()) {
    yield* log.remove(seq)
    logMessageDeleted()
    if (i % deletedAtOnce === deletedAtOnce - 1) yield* Effect.sleep(pause)
  }
})

/** Deletes the rest of a step that an earlier term began. */
const finishStep = Effect.gen(function* () {
  const { deleting } = yield* readHistoryPlace
  if (deleting.length === 0) return
  yield* deleteAll(deleting)
  yield* writeHistoryPlace({ deleting: [] })
})

/** Has the projector take old tombstones from lists, and waits until the bucket is without. */
const forgetLater = Effect.fnUntraced(function* (sets: Sets, forgotten: ReadonlyArray<Forgotten>) {
  if (forgotten.length === 0) return
  const done = yield* Deferred.make<void>()
  for (const { endpoints, ...each } of forgotten)
    for (let n = 0; n === 0 || n < endpoints.length; n += endpointsMax)
      sets.forgotten.push({ ...each, endpoints: endpoints.slice(n, n + endpointsMax), done })
  yield* Deferred.await(done)
})

/** Users that are forgotten together, and endpoints of each: each may be on a page of 122 KB. */
const usersMax = 8
const endpointsMax = 8
/** After this time the projector applies commands again, and the next call goes on. */
const turnMillis = 100

/**
 * Takes old tombstones from lists, and old ends from the pages of their endpoints. The list of a
 * user who has nothing else stays, as an empty one: once a key is removed, a killed nats-server
 * 2.15 brings back what was overwritten.
 */
export const forgetTombstones = Effect.fnUntraced(function* (sets: Sets, saved: number) {
  const began = yield* monotonicMillis
  while (sets.forgotten.length > 0) {
    yield* forgetSome(sets, saved)
    if ((yield* monotonicMillis) - began >= turnMillis) return
  }
})

const forgetSome = Effect.fnUntraced(function* (sets: Sets, saved: number) {
  const { forgotten, lists } = sets
  const some = forgotten.splice(0, usersMax)
  yield* lists.load(some.map(({ user }) => keys.subscriptions(user)))
  for (const { removed, seq, user } of some) {
    const key = keys.subscriptions(user)
    const list = lists.get(key)
    if (list === undefined) continue
    const left = { ...list, tombstones: withoutTombstones(list.tombstones, removed) }
    const isOver =
      list.seq === seq &&
      Object.keys(list.subscriptions).length === 0 &&
      Object.keys(left.tombstones).length === 0
    if (isOver) lists.set(key, { ...emptyList }, saved + 1)
    else if (Object.keys(removed).length > 0) lists.set(key, left, saved + 1)
  }
  yield* lists.flush
  yield* forgetEnds(sets, some, saved)
  for (const { done } of some)
    if (!forgotten.some((each) => each.done === done)) yield* Deferred.succeed(done, undefined)
})

/**
 * A page loses an end that counts no more with its next change, which may never come. LOG has no
 * message any more by which an erasure would find it.
 */
const forgetEnds = Effect.fnUntraced(function* (
  { owners }: Sets,
  some: ReadonlyArray<Forgotten>,
  saved: number
) {
  for (const { before, endpoints, user } of some)
    for (const hash of endpoints) {
      const key = keys.endpointOwners(hash)
      yield* owners.load([key])
      const page = owners.get(key)
      const left = page && withoutEnd(page, hash, user, before)
      if (left === undefined || left === page) continue
      owners.set(key, left, saved + 1)
      // A user can have endpoints of many pages, of 122 KB each.
      yield* owners.flush
    }
})
