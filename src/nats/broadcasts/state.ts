// Reads who published a broadcast, its progress and its state, and changes the state: for requests
// and for the command alike.
import * as Effect from "effect/Effect"
import { expiresAtOf, readHeaders } from "#domain/broadcast.ts"
import {
  type BroadcastState,
  changeIn,
  changeTo,
  mayBecome,
  type StateChange,
  stateAfter,
  type WantedState
} from "#domain/broadcast-state.ts"
import type { Progress } from "#domain/progress/progress.ts"
import { keys } from "#streams/buckets.ts"
import { parseBroadcast, subjects } from "#streams/subjects.ts"
import type { ChannelToken } from "#streams/tokens.ts"
import { Buckets } from "../kv/bucket.ts"
import { readParts } from "../kv/read-parts.ts"
import { EventLog } from "../stream/event-log.ts"
import type { Stored } from "../stream/stored.ts"

/** A broadcast as LOG has it. */
export interface Origin {
  readonly stored: Stored
  readonly source: string
  /** Or `directToken`. */
  readonly channel: ChannelToken
}

/** Undefined: the message is no broadcast. */
export const originIn = (stored: Stored): Origin | undefined => {
  const place = parseBroadcast(stored.subject)
  return place && { stored, ...place }
}

/** Undefined: the sequence is that of no broadcast. */
export const originOf = Effect.fnUntraced(function* (broadcast: number) {
  const stored = yield* (yield* EventLog).at("log", broadcast)
  return stored && originIn(stored)
})

/** When the life of a broadcast is over, by its TTL. */
export const expiresAtIn = ({ stored: { at, header } }: Origin): number =>
  expiresAtOf(at, readHeaders(header).headers.ttlSeconds)

const changeOf = (stored: Stored | undefined): StateChange | undefined =>
  stored === undefined || stored.message.type === "malformed" ? undefined : changeIn(stored.message)

/** The state and the progress of a broadcast. */
export interface Standing {
  readonly state: BroadcastState
  /** The last change of the state; undefined: there was none. */
  readonly change: Stored | undefined
  /** Undefined: the broadcast is not planned yet, or rejected. */
  readonly progress: Progress | undefined
  /** The reason why nothing is sent. */
  readonly rejected: string | undefined
}

/** From the messages of LOG about a broadcast, by subject, and its progress in the bucket. */
const standingFrom = (
  { channel, stored: { seq } }: Origin,
  stored: ReadonlyMap<string, Stored>,
  counted: Progress | undefined
): Standing => {
  const final = stored.get(subjects.finished(channel, seq))?.message
  const progress = final?.type === "broadcast.finished/1" ? final : counted
  const rejection = stored.get(subjects.rejected(seq))?.message
  const rejected = rejection?.type === "broadcast.rejected/1" ? rejection.reason : undefined
  const change = stored.get(subjects.state(seq))
  const isOver = progress?.finished === true || rejected !== undefined
  const last = stateAfter(changeOf(change))
  const state = isOver && last !== "cancelled" ? "finished" : last
  return { state, change, progress, rejected }
}

const factsOf = ({ channel, stored: { seq } }: Origin): ReadonlyArray<string> => [
  subjects.state(seq),
  subjects.finished(channel, seq),
  subjects.rejected(seq)
]

const bySubject = (found: ReadonlyArray<Stored | undefined>): ReadonlyMap<string, Stored> =>
  new Map(found.flatMap((stored) => (stored === undefined ? [] : [[stored.subject, stored]])))

/** As the leader has it. The bucket is up to a second late, and drops finished broadcasts. */
export const standingOf = Effect.fnUntraced(function* (origin: Origin) {
  const log = yield* EventLog
  const entry = yield* (yield* Buckets).get("broadcasts", keys.broadcast(origin.stored.seq))
  const found = yield* Effect.forEach(factsOf(origin), (subject) => log.last("log", subject), {
    concurrency: "unbounded"
  })
  return standingFrom(origin, bySubject(found), entry?.value)
})

/**
 * As `standingOf` for some broadcasts, in the same order, by two requests to any replica for up to
 * 256. The replica may be behind, or know nothing of a broadcast yet.
 */
export const standingsNearby = Effect.fnUntraced(function* (origins: ReadonlyArray<Origin>) {
  const buckets = yield* Buckets
  const log = yield* EventLog
  const places = origins.map(({ stored: { seq } }) => keys.broadcast(seq))
  const entries = yield* readParts(buckets, "broadcasts", places, 0)
  const counted = new Map(entries.map(({ key, value }) => [key, value]))
  const stored = bySubject(yield* log.lastOf("log", origins.flatMap(factsOf)))
  return origins.map((origin) =>
    standingFrom(origin, stored, counted.get(keys.broadcast(origin.stored.seq)))
  )
})

/** As `standingsNearby`, but the leader is asked for those that a replica knows nothing of. */
export const standingsOf = Effect.fnUntraced(function* (origins: ReadonlyArray<Origin>) {
  const standings = yield* standingsNearby(origins)
  return yield* Effect.forEach(standings, (standing, i) => {
    const isKnown = standing.progress !== undefined || standing.rejected !== undefined
    return isKnown ? Effect.succeed(standing) : standingOf(origins[i]!)
  })
})

/** Whether nothing about a broadcast changes any more. */
export const isFinal = ({ progress, state }: Standing): boolean =>
  state === "finished" || progress?.finished === true

/** Decides on the present state. Fails with AppendConflict if it changes meanwhile. */
const decide = Effect.fnUntraced(function* (
  origin: Origin,
  wanted: WantedState,
  by: string,
  at: number
) {
  const standing: Standing = yield* standingOf(origin)
  if (!mayBecome(standing.state, wanted)) return standing
  const { channel, stored } = origin
  const broadcast = stored.seq
  const about = { broadcast, channel, by, at, expiresAt: expiresAtIn(origin) }
  const { change } = standing
  const { type, ...body } = changeTo(wanted, changeOf(change), change?.at ?? 0, about)
  const subject = subjects.state(broadcast)
  yield* (yield* EventLog).append("log", { subject, type, body, expect: change?.seq ?? 0 })
  return yield* standingOf(origin)
})

/**
 * Changes the state of a broadcast, if that is possible, and returns what is then. The change is on
 * disk, and obeyed within a second. `by`: who wants it, at `at`.
 */
export const changeState = (origin: Origin, wanted: WantedState, by: string, at: number) =>
  decide(origin, wanted, by, at).pipe(
    Effect.retry({ times: 4, while: ({ _tag }) => _tag === "AppendConflict" })
  )
