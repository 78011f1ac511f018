// Carries out changes of the states of broadcasts, as far as workers cannot that only follow them:
// the jobs of a new run, the retries of a cancelled broadcast, the end of life during a pause. A
// change comes again until nothing is left of it, because a process that had not heard of it may
// store a job later.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { originOf } from "#broadcasts/state.ts"
import { States } from "#broadcasts/states.ts"
import { Settings } from "#config"
import { publisherOf, ttlSecondsMax } from "#domain/broadcast.ts"
import { changeIn, type StateChange } from "#domain/broadcast-state.ts"
import { countsOf } from "#domain/progress.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { type Delivery, done, later, never } from "#nats/stream/consumer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { keys } from "#streams/buckets.ts"
import { subjects } from "#streams/subjects.ts"
import { type ChannelToken, decodeToken } from "#streams/tokens.ts"
import { Elapsed } from "../elapsed.ts"
import { postponedMillis, postponedMillisMax } from "../jobs/writes.ts"
import { attemptLimitsOf } from "../push/transport/exchange.ts"
import { beginRun, endLost, endWaiting } from "./waiting-jobs.ts"

/**
 * Added to the longest attempt: a worker receives a change within a second, and then needs time to
 * store the outcomes of attempts that were under way. So an attempt that was under way at a pause
 * or cancellation is recorded so long after it.
 */
const recordedMillis = 5_000
/** An overtaken change that is older than this was logged when it was new. */
const overtakenLoggedMillis = 60_000
/** A process that has not received a resume after this time does not run. */
const receivedMillis = 120_000

/** Carries out a change of the state of a broadcast. */
export const handleChange = Effect.fn("delivery.change")(function* (delivery: Delivery) {
  const { message } = delivery
  if (message.type === "malformed") return never(message.reason)
  const change = changeIn(message)
  if (change === undefined) return never("no change of a state")
  const current = yield* Effect.exit(isCurrent(delivery, change))
  const isOvertaken = current._tag === "Success" && !current.value
  const ageMillis = (yield* Clock.currentTimeMillis) - delivery.at
  // A failed read ends this delivery below, and only the first delivery writes the line.
  if (delivery.deliveryCount === 1 && isWorthLogging(isOvertaken, ageMillis))
    yield* logChange(change)
  if (!(yield* current)) return done
  switch (change.type) {
    case "broadcast.paused":
      return yield* expire(delivery, change)
    case "broadcast.resumed":
    case "broadcast.cancelled":
      return yield* carryOn(delivery, change)
    default:
      // The planner carries out starts.
      return done
  }
})

/** Whether a change is the last one of a broadcast that is not over. */
const isCurrent = Effect.fnUntraced(function* ({ seq }: Delivery, change: StateChange) {
  const last = yield* (yield* EventLog).last("log", subjects.state(change.broadcast))
  return last?.seq === seq && !(yield* isOver(change))
})

/** Whether nothing of a broadcast can wait any more. */
const isOver = Effect.fnUntraced(function* (change: StateChange) {
  const log = yield* EventLog
  const { broadcast, channel } = change
  // A paused one waits until its end of life is carried out, maybe late.
  const from = change.type === "broadcast.paused" ? change.expiresAt : change.at
  if ((yield* Clock.currentTimeMillis) >= from + ttlSecondsMax * 1000) return true
  for (const subject of [
    subjects.finished(channel as ChannelToken, broadcast),
    subjects.rejected(broadcast)
  ])
    if ((yield* log.last("log", subject)) !== undefined) return true
  return false
})

/**
 * Whether to log a change. `isOvertaken`: by a later change, or by the end of the broadcast. A
 * consumer that is made again delivers the changes of years, which have their lines. A change that
 * is overtaken within a minute has none yet.
 */
export const isWorthLogging = (isOvertaken: boolean, ageMillis: number): boolean =>
  !isOvertaken || ageMillis < overtakenLoggedMillis

/** Logs a change. The counts may be a second old; the line lacks what cannot be read now. */
const logChange = Effect.fnUntraced(function* (change: StateChange) {
  const { broadcast, by, channel, type } = change
  const entry = (yield* Buckets).get("broadcasts", keys.broadcast(broadcast))
  const origin = yield* Effect.orElseSucceed(originOf(broadcast), () => undefined)
  const counted = yield* Effect.orElseSucceed(entry, () => undefined)
  const fields = {
    broadcast,
    publisher: origin && publisherOf(origin.source, origin.stored.header),
    channel: decodeToken(channel as ChannelToken),
    by,
    ...("because" in change ? change.because : {}),
    ...(counted && countsOf(counted.value))
  }
  const text = type.replace(".", " ")
  yield* by === "pause_when" ? Effect.logWarning(text, fields) : Effect.logInfo(text, fields)
})

/** Resumes a broadcast whose life is over, so that workers record what is left as expired. */
const expire = Effect.fnUntraced(function* (
  { at: pausedAt, seq }: Delivery,
  change: StateChange & { readonly type: "broadcast.paused" }
) {
  const { broadcast, channel, expiresAt, run, schedule } = change
  const kept = schedule === undefined ? {} : { schedule }
  const at = yield* Clock.currentTimeMillis
  if (at < expiresAt) return later(expiresAt - at)
  const body = { broadcast, channel, run: run + 1, by: "expiry", at, pausedAt, ...kept }
  const resumed = { subject: subjects.state(broadcast), type: "broadcast.resumed", body } as const
  // After a conflict, somebody has changed the state, and that change is carried out.
  yield* Effect.catchTag(
    (yield* EventLog).append("log", { ...resumed, expect: seq }),
    "AppendConflict",
    () => Effect.void
  )
  return done
})

/** Appends jobs of a new run, and ends what is cancelled. Returns when to look again, if ever. */
const carryOn = Effect.fnUntraced(function* (
  { at, deliveryCount, seq }: Delivery,
  change: StateChange & { readonly type: "broadcast.resumed" | "broadcast.cancelled" }
) {
  const { orderOf } = yield* States
  const { pushTimeoutMillis } = yield* Settings
  const settleMillis = attemptLimitsOf(pushTimeoutMillis).attemptMillis + recordedMillis
  const sinceChange = yield* (yield* Elapsed).since(`log ${seq}`, at)
  // After a resume, retries of its run may be under way at the cancellation.
  const { pausedAt = at, run, type } = change
  // Otherwise pauses and resumes that alternate would delay the changes of other broadcasts.
  const isOvertaken = () => type === "broadcast.resumed" && orderOf(change) !== "send"
  const settledMillis = sinceChange - settleMillis
  const unsettledMillis = run === 0 ? 0 : Math.min(0, pausedAt - at) - settledMillis
  if (run > 0) yield* beginRun(change, unsettledMillis <= 0, isOvertaken)
  if (type === "broadcast.cancelled") {
    yield* endWaiting(change.broadcast)
    if (looksForLost(settledMillis, deliveryCount)) yield* endLost(change)
  } else if (unsettledMillis <= 0 && sinceChange >= receivedMillis) return done
  const waits = [unsettledMillis, -settledMillis, postponedMillis(deliveryCount)]
  return later(Math.min(...waits.filter((millis) => millis > 0)))
})

/**
 * Whether a delivery of a cancellation also reads the outcomes: in the first minute after the last
 * of them can be stored, and later at each doubled number of deliveries, because a broadcast that
 * lacks more than retries stays unfinished for weeks. `settledMillis`: since that time.
 */
const looksForLost = (settledMillis: number, deliveryCount: number): boolean =>
  settledMillis >= 0 &&
  (settledMillis < postponedMillisMax || Number.isInteger(Math.log2(deliveryCount / 6)))
