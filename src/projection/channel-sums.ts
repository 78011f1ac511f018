// Stores in LOG what takes the place of a channel's messages that go: since when it counts, and the
// pushes of broadcasts whose final counts are old. The old messages are deleted only after this, so
// a crash in between changes nothing. LOG has the last one of a channel only.
import * as Effect from "effect/Effect"
import {
  type ChannelSummed,
  evolveSum,
  type FinalCounts,
  isCounted,
  sumSince
} from "#domain/outcome.ts"
import { isBegun } from "#domain/registration.ts"
import { isInWork, type Summed } from "#history/broadcasts.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import type { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { keys } from "#streams/buckets.ts"
import { filters, parseFinished, parseSummed, subjects } from "#streams/subjects.ts"
import type { ChannelToken } from "#streams/tokens.ts"
import type { Sets } from "./sets.ts"

/** Former ones of a subject that are read at once. */
const formersMax = 100
/** Final counts that are read at once, and broadcasts that are looked for in WORK at once. */
const finalsAtOnce = 500
const lookedForAtOnce = 16
/** So often others may store the begin of a channel at the same time. */
const conflictsMax = 20

type Log = EventLog["Service"]

/** Final counts as LOG has them. */
export interface Final {
  readonly channel: ChannelToken
  /** Their sequence in LOG. */
  readonly seq: number
  readonly counts: FinalCounts
}

/** Undefined: the message is no final counts. */
export const finalIn = ({ message, seq, subject }: Stored): Final | undefined => {
  const place = parseFinished(subject)
  if (message.type !== "broadcast.finished" || place?.broadcast !== message.broadcast)
    return undefined
  return { channel: place.channel, seq, counts: message }
}

/** Undefined: the message is no sum of final counts. */
export const sumIn = ({ message, subject }: Stored) => {
  const channel = parseSummed(subject)
  if (message.type !== "channel.summed" || channel === undefined) return undefined
  const { type: _, ...sum } = message
  return { channel, sum }
}

/** A message of a channel, as its place in LOG. */
interface Counted {
  readonly channel: ChannelToken
  readonly upTo: number
}

/**
 * Stores what the counts of channels with other users rest on in these messages and those before
 * them, so that these may go. The last message of a channel says all that former ones said.
 */
export const keepBegins = Effect.fnUntraced(function* (sets: Sets, all: ReadonlyArray<Counted>) {
  for (const [channel, some] of Map.groupBy(all, (each) => each.channel))
    yield* keepBegin(sets, channel, Math.max(...some.map(({ upTo }) => upTo))).pipe(
      // Several erasures and the trimmer may keep it at once: the last one must say most.
      Effect.retry({ while: ({ _tag }) => _tag === "AppendConflict", times: conflictsMax })
    )
})

const keepBegin = Effect.fnUntraced(function* (
  { log }: Sets,
  channel: ChannelToken,
  wanted: number
) {
  const { get } = yield* Buckets
  const subject = subjects.begun(channel)
  // First: these counts are then not older than those that the last one has.
  const last = yield* log.last("log", subject)
  const counts = (yield* get("channels", keys.channelRegistrations(channel)))?.value
  const begin = (yield* get("channels", keys.channelBegin(channel)))?.value
  if (!isBegun(counts, begin) || counts.registrations === 0) return
  const { lastModified, seq: upTo, since } = counts
  const kept = last?.message
  if (kept?.type === "channel.begun" && kept.since === since && kept.upTo >= wanted) return
  const body = { lastModified, since, upTo }
  const expect = last?.seq ?? 0
  const { seq } = yield* log.append("log", { subject, type: "channel.begun", body, expect })
  yield* removeFormers(log, subject, seq)
})

/** Deletes the messages of a subject before its last one. */
const removeFormers = Effect.fnUntraced(function* (log: Log, subject: string, last: number) {
  const found = yield* log.following("log", subject, { from: 1, limit: formersMax })
  for (const { seq } of found) if (seq < last) yield* log.remove(seq)
})

/**
 * Stores the sums of all final counts of these channels, up to these. Returns a function that says
 * whether a sum has these now. Where WORK still has something of a broadcast, the sum stops before
 * it: a fold would count that twice.
 */
export const keepSums = Effect.fnUntraced(function* (
  { log }: Pick<Sets, "log">,
  all: ReadonlyArray<Summed>
) {
  const summedUpTo = new Map<ChannelToken, number>()
  for (const [channel, some] of Map.groupBy(all, (each) => each.channel)) {
    const since = Math.max(...some.map((each) => each.since))
    const upTo = Math.max(...some.map((each) => each.upTo))
    summedUpTo.set(channel, yield* keepSum(log, { channel, since, upTo }))
  }
  return ({ channel, upTo }: Summed): boolean => upTo <= (summedUpTo.get(channel) ?? 0)
})

/**
 * Returns the sequence up to which the sum goes. Fails if another projector stored one meanwhile:
 * this one would lack what that one summed, whose final counts may be gone.
 */
const keepSum = Effect.fnUntraced(function* (log: Log, { channel, since, upTo }: Summed) {
  const subject = subjects.summed(channel)
  const last = yield* log.last("log", subject)
  const before = sumSince(last && sumIn(last)?.sum, since)
  const sum = yield* sumOn(log, channel, before, upTo)
  if (sum === before) return before.upTo
  const { seq } = yield* log.append("log", {
    subject,
    type: "channel.summed",
    body: sum,
    expect: last?.seq ?? 0
  })
  yield* removeFormers(log, subject, seq)
  return sum.upTo
})

/** A sum with the next final counts of a channel, up to a sequence or to a broadcast in WORK. */
const sumOn = Effect.fnUntraced(function* (
  log: Log,
  channel: ChannelToken,
  before: ChannelSummed,
  upTo: number
) {
  let sum = before
  while (sum.upTo < upTo) {
    const bounds = { from: sum.upTo + 1, limit: finalsAtOnce }
    const found = yield* log.following("log", filters.finishedIn(channel), bounds)
    const some = found.filter(({ seq }) => seq <= upTo)
    // A replica that is behind may lack the last of them.
    if (some.length === 0) return sum
    const { since } = sum
    const areInWork = yield* Effect.forEach(some, (each) => isCountedInWork(each, since), {
      concurrency: lookedForAtOnce
    })
    for (const [i, each] of some.entries()) {
      if (areInWork[i]) return sum
      sum = evolveSum(sum, finalIn(each)?.counts, each.seq)
    }
  }
  return sum
})

/** Whether WORK has something of a broadcast whose final counts a sum would have. */
const isCountedInWork = (stored: Stored, since: number) => {
  const final = finalIn(stored)
  return final !== undefined && isCounted(final.counts, since)
    ? isInWork(final.channel, final.counts.broadcast)
    : Effect.succeed(false)
}
