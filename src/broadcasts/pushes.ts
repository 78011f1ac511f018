// The pushes of a broadcast with their last outcomes, in pages from WORK.
import * as Effect from "effect/Effect"
import type { Origin } from "#broadcasts/state.ts"
import { mapInTurns } from "#clock/map-in-turns.ts"
import type { PushResult } from "#domain/outcome.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { filters, subjects } from "#streams/subjects.ts"
import { shardOf, type UserToken } from "#streams/tokens.ts"

/** Outcomes of shards that are read at once: 1,024 pushes, in 200 KB. */
const messagesAtOnce = 16
/** Such reads of one page, which decodes them for about 100 ms. A client goes on with the next. */
const readsMax = 16

/** The last outcome of one push. */
export type Push = Omit<PushResult, "at" | "attempt" | "former" | "nextAt"> & {
  readonly attempts: number
}

export const pushOf = (result: PushResult): Push => {
  const { at: _, attempt: attempts, former: __, nextAt: ___, ...rest } = result
  return { ...rest, attempts }
}

/** The place of a push: the sequence of its first outcome in WORK, and its place therein. */
export interface PushPlace {
  readonly seq: number
  readonly i: number
}

/** The first place. */
export const firstPush: PushPlace = { seq: 1, i: 0 }

export interface PushSelection {
  /** Undefined: those of all users. */
  readonly user: UserToken | undefined
  /** The place at which the page begins. */
  readonly from: PushPlace
  /** At most so many. */
  readonly limit: number
  readonly isWanted: (result: PushResult) => boolean
}

interface Found {
  readonly place: PushPlace
  readonly result: PushResult
}

const resultsIn = ({ message, seq }: Stored): ReadonlyArray<Found> =>
  message.type === "outcome/1"
    ? message.results.map((result, i) => ({ place: { seq, i }, result }))
    : []

/** The outcomes of the shards with the pushes; undefined: the broadcast is not planned. */
const filterOf = Effect.fnUntraced(function* (
  { channel, stored: { seq } }: Origin,
  user: UserToken | undefined
) {
  if (user === undefined) return filters.shardOutcomesIn(channel, seq)
  const plan = (yield* (yield* EventLog).last("work", subjects.plan(channel, seq)))?.message
  return plan?.type === "plan/1"
    ? subjects.shardOutcome(channel, seq, shardOf(user, plan.depth))
    : undefined
})

/** A push that was tried again has later outcomes under a subject of its own. */
const withLast = Effect.fnUntraced(function* (
  { channel, stored }: Origin,
  found: ReadonlyArray<Found>
) {
  const log = yield* EventLog
  const subjectOf = ({ subscription, user }: PushResult) =>
    subjects.pushOutcome(channel, stored.seq, user as UserToken, subscription)
  const again = found.flatMap(({ result }) =>
    result.fate === "retrying" ? [subjectOf(result)] : []
  )
  const last = new Map<string, PushResult>()
  for (const { message, subject } of yield* log.lastOf("work", again))
    if (message.type === "outcome/1" && message.results[0] !== undefined)
      last.set(subject, message.results[0])
  return found.map(({ place, result }): Found => {
    const later = result.fate === "retrying" ? last.get(subjectOf(result)) : undefined
    return { place, result: later ?? result }
  })
})

/**
 * The selected pushes, in the order of their first outcomes. `next`: the place from which the list
 * goes on; undefined: it is complete. What was stored in the last second may be missing.
 */
export const listPushes = Effect.fnUntraced(function* (
  origin: Origin,
  { from: begin, isWanted, limit, user }: PushSelection
) {
  const log = yield* EventLog
  const rows: Array<PushResult> = []
  const filter = yield* filterOf(origin, user)
  if (filter === undefined) return { rows, next: undefined }
  let from = begin
  for (let reads = 0; reads < readsMax; reads++) {
    const bounds = { from: from.seq, limit: messagesAtOnce }
    const messages = yield* log.following("work", filter, bounds)
    // Most messages of a shard do not name the user, and are not decoded.
    const named = messages.filter(({ text }) => user === undefined || text.includes(user))
    const read = (yield* mapInTurns(named, resultsIn)).flat()
    const rest = read.filter(
      ({ place: { i, seq }, result }) =>
        (seq > from.seq || i >= from.i) && (user === undefined || result.user === user)
    )
    for (const { place, result } of yield* withLast(origin, rest)) {
      if (!isWanted(result)) continue
      if (rows.length === limit) return { rows, next: place }
      rows.push(result)
    }
    if (messages.length < messagesAtOnce) return { rows, next: undefined }
    from = { seq: messages.at(-1)!.seq + 1, i: 0 }
  }
  return { rows, next: from }
})
