// Reads who published a broadcast, its progress and its state, changes the state, and sends a
// finished broadcast again: for requests and for the command alike.

import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import {
  bodyHeaders,
  byHeaders,
  expiresAtOf,
  givenHeaders,
  payloadHeader,
  readHeaders,
  redrivesHeader
} from "#domain/broadcast.ts"
import { laterStart } from "#domain/broadcast-start.ts"
import {
  type BroadcastChanged,
  type BroadcastPaused,
  type BroadcastState,
  changeIn,
  changeTo,
  mayBecome,
  type Schedule,
  type StateChange,
  scheduleAfter,
  stateOf,
  type WantedState
} from "#domain/broadcast-state.ts"
import type { Failures, Progress } from "#domain/progress.ts"
import { millisOf } from "#domain/timestamp.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { readParts } from "#nats/kv/entries.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { keys } from "#streams/buckets.ts"
import { parseBroadcast, subjects } from "#streams/subjects.ts"
import type { ChannelToken } from "#streams/tokens.ts"

/** A broadcast as LOG has it. */
export interface Origin {
  readonly stored: Stored
  readonly source: string
  /** Or `directToken` or `channelsToken`. */
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

const changeOf = (stored: Stored | undefined): StateChange | undefined =>
  stored && changeIn(stored.message)

/** The state and the progress of a broadcast. */
export interface Standing {
  readonly state: BroadcastState
  /** The last change of the state; undefined: there was none. */
  readonly change: Stored | undefined
  /** Undefined: the broadcast started when it was accepted. */
  readonly schedule: Schedule | undefined
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
  /** Undefined: the broadcast is not planned yet, or rejected. */
  readonly progress: Progress | undefined
  /** The reason why nothing is sent. */
  readonly rejected: string | undefined
}

type Ends = Pick<Standing, "progress" | "rejected">

/** Why nothing about a broadcast changes any more; undefined: something may. */
export const endOf = ({ progress, rejected }: Ends) => {
  if (rejected !== undefined) return "rejected"
  return progress?.finished === true ? "finished" : undefined
}

/** Whether nothing about a broadcast changes any more. */
export const isFinal = (standing: Ends): boolean => endOf(standing) !== undefined

/**
 * The state of a broadcast, and when it starts. `last`: the last message about its state. `end`:
 * why nothing about it changes any more.
 */
export const stateFrom = (
  { at, header }: Stored,
  last: Stored | undefined,
  end: "finished" | "rejected" | undefined
) => {
  const change = changeOf(last)
  const later = laterStart(header, at)
  const schedule: Schedule | undefined =
    last === undefined || change === undefined ? later : scheduleAfter(change, last)
  const startsAt = schedule === undefined ? at : (schedule.startedAt ?? millisOf(schedule.at) ?? at)
  return { state: stateOf(change, later !== undefined, end), schedule, startsAt }
}

/** From the messages of LOG about a broadcast, by subject, and its progress in the bucket. */
const standingFrom = (
  { channel, stored: origin }: Origin,
  stored: ReadonlyMap<string, Stored>,
  counted: Progress | undefined
): Standing => {
  const { header, seq } = origin
  const final = stored.get(subjects.finished(channel, seq))?.message
  const progress = final?.type === "broadcast.finished" ? final : counted
  const rejection = stored.get(subjects.rejected(seq))?.message
  const rejected = rejection?.type === "broadcast.rejected" ? rejection.reason : undefined
  const change = stored.get(subjects.state(seq))
  const { schedule, startsAt, state } = stateFrom(origin, change, endOf({ progress, rejected }))
  const expiresAt = expiresAtOf(startsAt, readHeaders(header).headers.ttlSeconds)
  return { state, change, schedule, expiresAt, progress, rejected }
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
    const { change, progress, rejected } = standing
    const isKnown = (change ?? progress ?? rejected) !== undefined
    return isKnown ? Effect.succeed(standing) : standingOf(origins[i]!)
  })
})

/**
 * Appends what follows the present state, if anything does, and returns what is then. Fails with
 * AppendConflict if the state changes meanwhile. `isChanged`: it was appended.
 */
const decide = Effect.fnUntraced(function* (
  origin: Origin,
  next: (standing: Standing) => StateChange | undefined
) {
  const standing: Standing = yield* standingOf(origin)
  const following = next(standing)
  if (following === undefined) return { ...standing, isChanged: false }
  const { type, ...body } = following
  const subject = subjects.state(origin.stored.seq)
  const expect = standing.change?.seq ?? 0
  yield* (yield* EventLog).append("log", { subject, type, body, expect })
  return { ...(yield* standingOf(origin)), isChanged: true }
})

const decided = (...args: Parameters<typeof decide>) =>
  decide(...args).pipe(Effect.retry({ times: 4, while: ({ _tag }) => _tag === "AppendConflict" }))

/** The part that all changes of a broadcast share. */
const about = ({ channel, stored }: Origin, schedule: Schedule | undefined) => ({
  broadcast: stored.seq,
  channel,
  ...(schedule === undefined ? {} : { schedule })
})

const following = (
  origin: Origin,
  { change, expiresAt, schedule, state }: Standing,
  wanted: WantedState,
  why: Pick<typeof BroadcastPaused.Type, "by" | "at" | "because">
): StateChange | undefined =>
  mayBecome(state, wanted)
    ? changeTo(wanted, changeOf(change), change?.at ?? 0, {
        ...about(origin, schedule),
        ...why,
        expiresAt
      })
    : undefined

/** Whether a change may follow this standing; else nothing is appended. */
export type Expected = (standing: Standing) => boolean

/**
 * Changes the state of a broadcast, if that is possible, and returns what is then. The change is on
 * disk, and obeyed within a second. `by`: who wants it, at `at`.
 */
export const changeState = (
  origin: Origin,
  wanted: WantedState,
  by: string,
  at: number,
  isExpected: Expected = () => true
) =>
  decided(origin, (standing) =>
    isExpected(standing) ? following(origin, standing, wanted, { by, at }) : undefined
  )

/** Pauses a broadcast of which too many pushes failed in its present run. */
export const pauseFailed = (origin: Origin, { because, run }: Failures, at: number) =>
  decided(origin, (standing) =>
    (changeOf(standing.change)?.run ?? 0) === run
      ? following(origin, standing, "paused", {
          by: "pause_when",
          at,
          ...(because && { because })
        })
      : undefined
  )

/** Another payload of a broadcast. */
type NewPayload = Pick<typeof BroadcastChanged.Type, "data" | "data_by_locale" | "parts">

interface NewSchedule {
  /** Undefined leaves it. */
  readonly startAt: string | undefined
  readonly rate: number | undefined
  /** Without keys leaves it. */
  readonly payload: NewPayload
}

/** Changes a broadcast that has not started, and returns what is then. */
export const reschedule = (
  origin: Origin,
  { payload, rate, startAt }: NewSchedule,
  by: string,
  at: number,
  isExpected: Expected
) =>
  decided(origin, (standing) => {
    const { schedule, state } = standing
    if (state !== "scheduled" || schedule === undefined || !isExpected(standing)) return undefined
    const next = {
      ...schedule,
      at: startAt ?? schedule.at,
      ...(rate === undefined ? {} : { rate })
    }
    const base = { ...about(origin, next), schedule: next }
    return { type: "broadcast.changed", ...base, run: 0, by, at, ...payload }
  })

/** The reason why a broadcast is not sent again. */
export class NotRedriven extends Data.TaggedError("NotRedriven")<{
  /**
   * `rejected`: it was never sent. `unfinished`: some of its pushes may still arrive. `forgotten`:
   * its outcomes are no longer stored. `redriven`: as the broadcast `former`, and a second time
   * would reach some users twice.
   */
  readonly reason: "rejected" | "unfinished" | "forgotten" | "redriven"
  readonly former?: number
}> {}

/** Number of pushes that a redrive sends again at most. Fails unless that is known for good. */
export const undeliveredOf = Effect.fnUntraced(function* (origin: Origin) {
  const { progress, rejected } = yield* standingOf(origin)
  if (rejected !== undefined) return yield* new NotRedriven({ reason: "rejected" })
  if (progress?.finished !== true) return yield* new NotRedriven({ reason: "unfinished" })
  const count = progress.dead + progress.expired
  // WORK drops the plan before the outcomes, which are younger.
  const plan = subjects.plan(origin.channel, origin.stored.seq)
  const isStored = count === 0 || (yield* (yield* EventLog).last("work", plan)) !== undefined
  return isStored ? count : yield* new NotRedriven({ reason: "forgotten" })
})

/** The headers of what was changed before the start: of the payload that was sent, and the rate. */
const changedHeaders = Effect.fnUntraced(function* (origin: Origin) {
  const { header } = origin.stored
  const former = origin.source === "redrive" ? header(payloadHeader) : undefined
  const { schedule } = yield* standingOf(origin)
  const payload = schedule?.payload ?? former
  return {
    ...(payload === undefined ? {} : { [payloadHeader]: String(payload) }),
    ...bodyHeaders({ rate: schedule?.rate })
  }
})

const append = Effect.fnUntraced(function* (origin: Origin, by: string) {
  const { channel, stored } = origin
  const { header, message, seq: broadcast } = stored
  const log = yield* EventLog
  if (message.type !== "broadcast" && message.type !== "direct")
    return yield* new NotRedriven({ reason: "rejected" })
  const subject = subjects.broadcast("redrive", channel)
  let [expect, former] = [0, 0]
  yield* log.replay("log", [subject], ({ header, seq }) => {
    expect = seq
    if (header(redrivesHeader) === String(broadcast)) former = seq
  })
  if (former > 0) return yield* new NotRedriven({ reason: "redriven", former })
  // The time to live starts again.
  const headers = {
    ...givenHeaders(header),
    ...byHeaders(by),
    ...(yield* changedHeaders(origin)),
    [redrivesHeader]: String(broadcast)
  }
  const { type, ...body } = message
  return (yield* log.append("log", { subject, type, body, headers, expect })).seq
})

/**
 * Sends a finished broadcast again, to the subscriptions whose pushes ended as dead or expired.
 * Appends the new broadcast and returns its id. `by`: who wants it. Fails if there is one already.
 */
export const redrive = (origin: Origin, by: string) =>
  append(origin, by).pipe(
    Effect.retry({ times: 4, while: ({ _tag }) => _tag === "AppendConflict" })
  )
