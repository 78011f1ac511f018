// The parts of the streams that a rebuild reads beside the messages that the followers fold.
import * as Effect from "effect/Effect"
import type { Progress } from "#domain/progress/progress.ts"
import { gaveUp } from "#nats/stream/consumer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { filters, subjects } from "#streams/subjects.ts"
import type { ChannelToken } from "#streams/tokens.ts"

/** Final counts of a broadcast, from LOG. */
export interface Fact {
  readonly channel: ChannelToken
  readonly progress: Progress
}

/**
 * The final counts of broadcasts that WORK has no longer or not to their end, the commands that the
 * projector gave up, and the revisions that jobs of WORK wait for.
 */
export const readHistory = Effect.fnUntraced(function* (lastWork: number) {
  const log = yield* EventLog
  const planned = new Set<number>()
  const facts: Array<Fact> = []
  /** The revisions that jobs in WORK wait for. */
  let [subscriptions, registrations] = [0, 0]
  yield* log.replay("work", [filters.plans], ({ message }) => {
    if (message.type !== "plan/1") return
    planned.add(message.broadcast)
    subscriptions = Math.max(subscriptions, message.floor.subscriptions)
    registrations = Math.max(registrations, message.floor.registrations)
  })
  yield* log.replay("log", [filters.finished], ({ message, subject, text }) => {
    if (message.type !== "broadcast.finished/1") return
    // WORK counts it, unless it was copied before the broadcast was finished.
    if (planned.has(message.broadcast) && message.seq <= lastWork) return
    const channel = subject.split(".").at(-2) as ChannelToken
    if (subjects.finished(channel, message.broadcast) !== subject) return
    const progress = JSON.parse(text) as Progress
    facts.push({ channel, progress: { ...progress, seq: Math.min(progress.seq, lastWork) } })
  })
  /** Sequences. A rebuild passes over them, too: it would die on them. */
  const givenUp = new Set<number>()
  yield* log.replay("log", [filters.rejected], ({ message }) => {
    if (message.type === "command.rejected/1" && message.reason === gaveUp)
      givenUp.add(message.command)
  })
  return { facts, givenUp, floors: { subscriptions, registrations } }
})
export type History = Effect.Success<ReturnType<typeof readHistory>>
