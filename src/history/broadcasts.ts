// Finds the old messages of LOG that belong to a broadcast on which nothing rests any more: its
// parts, changes and end, too; and those that an erasure or a gateway that failed left of one.
// Reads only.
import * as Effect from "effect/Effect"
import { type Origin, originOf } from "#broadcasts/state.ts"
import { broadcastIdIn, isOwnSource, payloadHeader, redrivesHeader } from "#domain/broadcast.ts"
import { draftOf } from "#domain/draft.ts"
import { unneededOfBroadcast } from "#domain/history.ts"
import { isCounted } from "#domain/outcome.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { keys } from "#streams/buckets.ts"
import { filters, parseFinished, subjects } from "#streams/subjects.ts"
import { type ChannelToken, isDirect } from "#streams/tokens.ts"
import { readSome } from "./subject.ts"

/** Final counts that LOG has up to a sequence, of a channel that began at `since`. */
export interface Summed {
  readonly channel: ChannelToken
  readonly since: number
  readonly upTo: number
}

/** Of a redrive of a redrive and so on not more go at once. */
const atOnceMax = 1_000
const readAtOnce = 500

/** A broadcast by its end, or a broadcast that this one redrives. */
interface Over {
  readonly end: Stored
  readonly broadcast: number
}

/**
 * The messages that go with the end of a broadcast, and with the one before that it redrives: that
 * one may have stayed for it alone. `again`: as in `Unneeded`. `gone`: sequences that went before.
 */
export const ofBroadcast = Effect.fnUntraced(function* (
  over: Over,
  before: number,
  gone?: ReadonlySet<number>
) {
  const messages: Array<Stored> = []
  /** Broadcasts that go anyway. */
  const going = new Set<number>()
  /** Up to the last of the final counts: a redrive is on the channel of what it redrives. */
  let summed: Summed | undefined
  let again: number | undefined
  for (let next: Over | undefined = over; next !== undefined; ) {
    const found: Ended | undefined = yield* ended(next, before, going, gone)
    if (found === undefined) break
    messages.push(...found.messages)
    going.add(next.broadcast)
    if ((found.summed?.upTo ?? 0) > (summed?.upTo ?? 0)) summed = found.summed
    const following: Over | undefined = found.isPart ? next : found.former
    if (found.isPart || messages.length >= atOnceMax) {
      again = following?.end.seq
      break
    }
    next = following
  }
  if (messages.length === 0) return undefined
  return {
    what: "broadcasts" as const,
    messages,
    ...(summed !== undefined && { summed }),
    ...(again !== undefined && { again })
  }
})

interface Ended {
  readonly messages: ReadonlyArray<Stored>
  /** Changes of the broadcast alone. There are more. */
  readonly isPart?: boolean
  readonly summed?: Summed | undefined
  readonly former?: Over | undefined
}

const ended = Effect.fnUntraced(function* (
  { broadcast, end }: Over,
  before: number,
  going: ReadonlySet<number>,
  gone: ReadonlySet<number> | undefined
) {
  const some = yield* readSome(subjects.state(broadcast), gone)
  const changes = some.messages.slice(0, countOf(some.messages))
  const isPart = some.isPart || changes.length < some.messages.length
  const origin = yield* originOf(broadcast)
  if (origin === undefined) return yield* withoutOrigin({ broadcast, end }, changes, isPart, before)
  if ((yield* isDraftLeft(origin.stored)) || (yield* isInWork(origin.channel, broadcast)))
    return undefined
  const own = isOwnSource(origin.source) ? partsIn(origin.stored) : []
  const named = [...(isPart ? [] : own), ...changes.flatMap(partsIn)]
  const rests = new Set([...named, ...changes.map(({ seq }) => seq)])
  if (rests.size > 0 && (yield* isRedriven(origin, rests, going))) return undefined
  const parts = yield* partsAt(isPart ? named.filter((seq) => !own.includes(seq)) : named)
  if (isPart)
    return changes.every(({ at }) => at < before)
      ? ({ messages: [...changes, ...parts], isPart } satisfies Ended)
      : undefined
  const seqs = unneededOfBroadcast({ origin: origin.stored, parts, changes, end, before })
  if (seqs.length === 0) return undefined
  const bySeq = new Map([origin.stored, ...parts, ...changes, end].map((each) => [each.seq, each]))
  const found: Ended = {
    messages: seqs.map((seq) => bySeq.get(seq)!),
    summed: yield* summedWith(origin.channel, end),
    former: yield* formerOf(origin)
  }
  return found
})

/** How many of these changes go at once, with the parts that they name. */
const countOf = (changes: ReadonlyArray<Stored>): number => {
  let going = 0
  const over = changes.findIndex((each) => {
    going += 1 + partsIn(each).length
    return going > atOnceMax
  })
  return over === -1 ? changes.length : over
}

const partsIn = ({ message }: Stored): ReadonlyArray<number> =>
  "parts" in message ? (message.parts ?? []) : []

/**
 * The end of a broadcast that is none, and of one that LOG does not have any more: a subject that
 * names no channel, a letter to an erased user, or a step of the trimmer that was not ended.
 */
const withoutOrigin = Effect.fnUntraced(function* (
  { broadcast, end }: Over,
  changes: ReadonlyArray<Stored>,
  isPart: boolean,
  before: number
) {
  const stored = yield* (yield* EventLog).at("log", broadcast)
  const isNone = stored?.subject.startsWith(filters.broadcasts.slice(0, -1)) === true
  const messages = [...(isNone ? [stored] : []), ...changes, ...(isPart ? [] : [end])]
  if (!messages.every(({ at }) => at < before)) return undefined
  const channel = parseFinished(end.subject)?.channel
  const summed = channel && (yield* summedWith(channel, end))
  return { messages, ...(isPart ? { isPart } : { summed }) } satisfies Ended
})

/** Whether LOG still has the form of the draft that a broadcast was: without it, it is a draft. */
const isDraftLeft = Effect.fnUntraced(function* ({ header }: Stored) {
  const draft = draftOf(header)
  if (draft === undefined) return false
  const last = yield* (yield* EventLog).last("log", subjects.draft(draft.id))
  // A later form is another draft of this id, which this broadcast does not end.
  return last !== undefined && last.seq <= draft.seq
})

/** Whether WORK has the plan of a broadcast, or outcomes. */
export const isInWork = Effect.fnUntraced(function* (channel: ChannelToken, broadcast: number) {
  const { following, last } = yield* EventLog
  if ((yield* last("work", subjects.plan(channel, broadcast))) !== undefined) return true
  const outcomes = filters.outcomesIn(channel, broadcast)
  return (yield* following("work", outcomes, { from: 1, limit: 1 })).length > 0
})

/** Whether a later redrive rests on parts or changes of a broadcast. */
const isRedriven = Effect.fnUntraced(function* (
  { channel, stored }: Origin,
  rests: ReadonlySet<number>,
  going: ReadonlySet<number>
) {
  const { following } = yield* EventLog
  const subject = subjects.broadcast("redrive", channel)
  for (let from = stored.seq + 1; ; ) {
    const some = yield* following("log", subject, { from, limit: readAtOnce })
    for (const redrive of some) {
      if (going.has(redrive.seq)) continue
      const named = [...partsIn(redrive), Number(redrive.header(payloadHeader))]
      if (named.some((each) => rests.has(each))) return true
    }
    if (some.length === 0) return false
    from = some.at(-1)!.seq + 1
  }
})

/** The parts of a broadcast, as far as LOG has them before it or a change of it. */
const partsAt = Effect.fnUntraced(function* (sequences: ReadonlyArray<number>) {
  const log = yield* EventLog
  const found = yield* Effect.forEach(new Set(sequences), (seq) => log.at("log", seq))
  return found.flatMap((each) => (each?.subject === subjects.part ? [each] : []))
})

/** The final counts up to these; undefined: these are no term of the pushes of a channel. */
const summedWith = Effect.fnUntraced(function* (channel: ChannelToken, { message, seq }: Stored) {
  if (isDirect(channel) || message.type !== "broadcast.finished") return undefined
  const since = yield* beginOf(channel)
  if (since === undefined || !isCounted(message, since)) return undefined
  return { channel, since, upTo: seq } satisfies Summed
})

/** The present begin of a channel; undefined: nobody is registered. */
export const beginOf = Effect.fnUntraced(function* (channel: ChannelToken) {
  const begin = yield* (yield* Buckets).get("channels", keys.channelBegin(channel))
  return begin?.value.since
})

/** The broadcast that another one redrives, with its end. */
const formerOf = Effect.fnUntraced(function* ({ channel, source, stored }: Origin) {
  const broadcast = source === "redrive" ? broadcastIdIn(stored.header(redrivesHeader) ?? "") : 0
  if (!broadcast) return undefined
  const end = yield* (yield* EventLog).last("log", subjects.finished(channel, broadcast))
  return end && { end, broadcast }
})

/**
 * Old messages of LOG that belong to no broadcast: the last changes of letters to erased users.
 * Undefined: LOG has the broadcast, or not all are old.
 */
export const leftChanges = Effect.fnUntraced(function* (
  subject: string,
  broadcast: number,
  before: number
) {
  if ((yield* (yield* EventLog).at("log", broadcast)) !== undefined) return undefined
  const { messages: found } = yield* readSome(subject)
  return found.every((each) => each.at < before) ? found : undefined
})

/**
 * A part is named in the request that stores it, or in a repetition of that within an hour: so long
 * NATS knows the names of messages. A day leaves room for processes that stood still.
 */
const namedMillis = 24 * 60 * 60_000
/** Most parts are named by the next messages. */
const namersAtOnce = 50

/**
 * Whether a part is named by no broadcast and no change that followed it. One that is named goes
 * with its broadcast; the broadcast stays as long as a redrive names the part.
 */
export const isUnnamed = Effect.fnUntraced(function* (part: Stored) {
  const { following } = yield* EventLog
  for (const filter of [filters.broadcasts, filters.states])
    for (let from = part.seq + 1; ; ) {
      const some = yield* following("log", filter, { from, limit: namersAtOnce })
      const soon = some.filter(({ at }) => at < part.at + namedMillis)
      if (soon.some((each) => partsIn(each).includes(part.seq))) return false
      if (soon.length < some.length || some.length === 0) break
      from = some.at(-1)!.seq + 1
    }
  return true
})
