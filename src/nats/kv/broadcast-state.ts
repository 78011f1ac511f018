// What is stored of a broadcast: who published it, its progress and its state. Changes the state,
// for requests and for the command alike.
import * as Effect from "effect/Effect"
import { type BroadcastState, mayBecome, type WantedState } from "#domain/broadcast-state.ts"
import type { Progress } from "#domain/outcome.ts"
import { keys } from "#streams/buckets.ts"
import { parseBroadcast, subjects } from "#streams/subjects.ts"
import type { ChannelToken } from "#streams/tokens.ts"
import { EventLog } from "../stream/event-log.ts"
import type { Stored } from "../stream/stored.ts"
import { Buckets } from "./bucket.ts"

/** A broadcast as LOG has it. */
export interface Origin {
  readonly stored: Stored
  readonly source: string
  /** Or `directToken`. */
  readonly channel: ChannelToken
}

/** Undefined: the sequence is that of no broadcast. */
export const originOf = Effect.fnUntraced(function* (broadcast: number) {
  const stored = yield* (yield* EventLog).at("log", broadcast)
  const place = stored === undefined ? undefined : parseBroadcast(stored.subject)
  if (stored === undefined || place === undefined) return undefined
  return { stored, ...place } satisfies Origin
})

/** The bucket is up to a second late, and drops finished broadcasts. */
const progressOf = Effect.fnUntraced(function* ({ channel, stored }: Origin) {
  const entry = yield* (yield* Buckets).get("broadcasts", keys.broadcast(stored.seq))
  if (entry?.value.finished === true) return entry.value
  const log = yield* EventLog
  const final = (yield* log.last("log", subjects.finished(channel, stored.seq)))?.message
  return final?.type === "broadcast.finished/1" ? final : entry?.value
})

const rejectionOf = Effect.fnUntraced(function* ({ stored }: Origin) {
  const log = yield* EventLog
  const rejection = (yield* log.last("log", subjects.rejected(stored.seq)))?.message
  return rejection?.type === "broadcast.rejected/1" ? rejection.reason : undefined
})

/** What became of a broadcast so far. */
export interface Standing {
  readonly state: BroadcastState
  /** The last change of the state; undefined: there was none. */
  readonly change: Stored | undefined
  /** Undefined: the broadcast is not planned yet, or rejected. */
  readonly progress: Progress | undefined
  /** The reason why nothing is sent. */
  readonly rejected: string | undefined
}

export const standingOf = Effect.fnUntraced(function* (origin: Origin) {
  const log = yield* EventLog
  const [change, progress] = yield* Effect.all(
    [log.last("log", subjects.state(origin.stored.seq)), progressOf(origin)],
    { concurrency: 2 }
  )
  const rejected = progress === undefined ? yield* rejectionOf(origin) : undefined
  const isOver = progress?.finished === true || rejected !== undefined
  const state =
    change?.message.type === "broadcast.cancelled/1" ? "cancelled" : isOver ? "finished" : "running"
  return { state, change, progress, rejected } satisfies Standing
})

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
  const log = yield* EventLog
  yield* log.append("log", {
    subject: subjects.state(broadcast),
    type: "broadcast.cancelled/1",
    body: { broadcast, channel, by, at },
    expect: standing.change?.seq ?? 0
  })
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
