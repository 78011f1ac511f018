// Sends a finished broadcast again, as a new one, to the subscriptions whose pushes ended as dead
// or expired: for requests and for the command alike.
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { type Origin, standingOf } from "#broadcasts/state.ts"
import { bodyHeaders, givenHeaders, payloadHeader, redrivesHeader } from "#domain/broadcast.ts"
import { byHeaders } from "#domain/broadcast-publisher.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"

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
  if (message.type !== "broadcast/1" && message.type !== "direct/1")
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
 * Appends the new broadcast and returns its id. `by`: who wants it. Fails if there is one already.
 */
export const redrive = (origin: Origin, by: string) =>
  append(origin, by).pipe(
    Effect.retry({ times: 4, while: ({ _tag }) => _tag === "AppendConflict" })
  )
