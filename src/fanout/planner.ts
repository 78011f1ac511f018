// Broadcast -> plan -> shard jobs. The planner decides once into how many shards a broadcast is
// cut, and rejects broadcasts that cannot be sent. One that starts later is planned at its start.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { States } from "#broadcasts/states.ts"
import { wholeBroadcast } from "#broadcasts/whole-broadcast.ts"
import { lifeMillisMin } from "#domain/broadcast.ts"
import { changeIn, isPlannedAt } from "#domain/broadcast-state.ts"
import { type BroadcastRef, shardDepth, shardsAtOnce, sinceOf } from "#domain/job.ts"
import type { Plan } from "#domain/outcome.ts"
import type { Recipients } from "#domain/recipients.ts"
import { unavailable } from "#nats/connection/errors.ts"
import { isSameTime } from "#nats/follower/checkpoint.ts"
import { type Applied, appliedMillis, Watermark } from "#nats/follower/watermark.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { Consumers, type Delivery, done, hindered, never } from "#nats/stream/consumer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { streams } from "#streams/index.ts"
import { parseState, subjects } from "#streams/subjects.ts"
import { type ChannelToken, decodeToken, shardsAt } from "#streams/tokens.ts"
import { countRegistrations } from "#subscriptions/audience.ts"
import { commandRejected } from "#telemetry/nats-metrics.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import {
  type PlanOfMessage,
  readBroadcast,
  type ShardRef,
  type Start,
  type Wanted,
  wholeError
} from "./read-broadcast.ts"
import { schedule, startDue } from "./starts.ts"

/** Broadcasts at a time: enough that many plans are stored as one batch. */
const broadcastsInFlight = 128

/** Jobs appended at once: only a high rate has more. */
const appendConcurrency = 128

/**
 * Pushes of a broadcast whose jobs wait in WORK at a time: the job of another broadcast, which is
 * taken after them, waits for this many pushes at most. A worker appends the next job and gets it
 * within some 10 ms.
 */
const waitingPushes = 2_000

const notAppliedAfterMillis = 1_000

const otherPlan =
  `${streams.work.name} has another broadcast of this number: stop all processes, ` +
  "run `bellcast rebuild`"

const rejections = makeRateLimitedLog("broadcasts were rejected")
const waits = makeRateLimitedLog("broadcasts wait to be planned")

/** Runs the planner until the scope of the layer closes. */
export const fanoutLayer = Layer.effectDiscard(
  Effect.gen(function* () {
    const { known } = yield* States
    const broadcasts = (yield* Consumers).each("log", "planner", broadcastsInFlight, handle, giveUp)
    yield* Effect.forkScoped(Effect.andThen(known, broadcasts))
    yield* Effect.forkScoped(startDue)
  })
).pipe(Layer.provide(States.layer))

const handle = (delivery: Delivery) => {
  const broadcast = parseState(delivery.subject)
  return broadcast === undefined ? plan(delivery) : planLater(delivery, broadcast)
}

/**
 * Plans a broadcast, lets it wait for its start, or rejects it. `start`: undefined where it starts
 * when it is accepted.
 */
const plan = Effect.fnUntraced(function* (stored: Stored, start?: Start) {
  const log = yield* EventLog
  const wanted = readBroadcast(stored, start)
  if ("reason" in wanted) return yield* reject(stored, wanted.reason)
  const { later, publisher, ref } = wanted
  log.cache(stored)
  const whole = yield* wholeBroadcast(log, stored, ref.payload)
  const error = wholeError(whole)
  if (whole === undefined || error !== undefined) return yield* reject(stored, error ?? "")
  if (later !== undefined) {
    const full = yield* schedule(stored, ref, publisher ?? "", later)
    return full === undefined ? done : yield* reject(stored, full)
  }
  // `states` of this process may learn of the cancellation later.
  const to = start?.isEnd === true ? undefined : whole.to
  // A recreated consumer reads LOG from its beginning. WORK has lost the old plans by then, but
  // LOG has the end of every finished broadcast.
  const isOld = (yield* Clock.currentTimeMillis) >= ref.acceptedAt + lifeMillisMin
  const finished = subjects.finished(ref.channel as ChannelToken, ref.broadcast)
  if (isOld && (yield* log.last("log", finished)) !== undefined) return done
  return yield* planNow(wanted, to)
})

/** Cuts a broadcast into shards as soon as the projection has what came before it. */
const planNow = Effect.fnUntraced(function* (
  { given, publisher, ref }: Wanted,
  to: Recipients | undefined
) {
  const applied = yield* Effect.result((yield* Watermark).reached(sinceOf(ref), appliedMillis))
  if (applied._tag === "Failure") {
    const reason = String(applied.failure.cause)
    yield* waits({ broadcast: ref.broadcast, reason })
    return hindered(notAppliedAfterMillis, "the projection lacks what came before")
  }
  const people = yield* peopleOf(to)
  const found = yield* planOf(ref, given, people, applied.success)
  yield* appendJobs(ref, found)
  // A cancelled broadcast goes to nobody: after `cancelled` this line would read as a new plan.
  if (people === undefined || (people > 0 && found.shards === 0)) return done
  yield* Effect.logInfo("broadcast planned", {
    broadcast: ref.broadcast,
    publisher,
    channel: decodeToken(ref.channel as ChannelToken),
    people,
    ...(to === undefined || to.users.length === 0 ? {} : { users: to.users.length }),
    shards: found.shards,
    ...(ref.rate === undefined ? {} : { rate: ref.rate }),
    ...(ref.redrives === undefined ? {} : { redrives: ref.redrives })
  })
  return done
})

/** Plans a broadcast that starts later than it was accepted, or is cancelled before. */
const planLater = Effect.fnUntraced(function* ({ at, message, seq }: Delivery, broadcast: number) {
  const change = changeIn(message)
  if (change === undefined) return never("no change of a state")
  if (!isPlannedAt(change)) return done
  const stored = yield* (yield* EventLog).at("log", broadcast)
  if (stored === undefined) return never("the broadcast is not in the log")
  return yield* plan(stored, {
    ...change.schedule,
    isEnd: change.type === "broadcast.cancelled",
    seq,
    at
  })
})

const reject = Effect.fnUntraced(function* (
  { seq, subject }: Pick<Stored, "seq" | "subject">,
  reason: string
) {
  const body = { broadcast: seq, subject, reason, at: yield* Clock.currentTimeMillis }
  const log = yield* EventLog
  yield* log.once("log", { subject: subjects.rejected(seq), type: "broadcast.rejected", body })
  commandRejected("planner")
  yield* rejections({ broadcast: seq, reason })
  return never(reason)
})

/** Rejects a broadcast on which the planner dies again and again. */
const giveUp = Effect.fnUntraced(function* ({ seq, subject }: Delivery, reason: string) {
  const broadcast = parseState(subject) ?? seq
  const stored = yield* (yield* EventLog).at("log", broadcast)
  return yield* reject(stored ?? { seq: broadcast, subject }, reason)
})

/** The registrations and the named users; undefined: nobody is to get the broadcast. */
const peopleOf = Effect.fnUntraced(function* (to: Recipients | undefined) {
  if (to === undefined) return undefined
  return (yield* countRegistrations(yield* Buckets, to.channels)) + to.users.length
})

/** The plan of a broadcast: a new one, or that of an earlier delivery of the message. */
const planOf = Effect.fnUntraced(function* (
  ref: BroadcastRef,
  given: PlanOfMessage,
  people: number | undefined,
  applied: Applied
) {
  const log = yield* EventLog
  const subject = subjects.plan(ref.channel as ChannelToken, ref.broadcast)
  const body = yield* newPlan(ref, given, people, applied)
  return yield* log.append("work", { subject, type: "plan", body, expect: 0 }).pipe(
    Effect.as(body),
    Effect.catchTag("AppendConflict", () =>
      Effect.flatMap(log.last("work", subject), (stored) => {
        if (stored?.message.type !== "plan") return Effect.succeed(body)
        // The number belonged to another broadcast in a WORK that was restored from a later copy.
        return isSameTime(stored.message.acceptedAt, given.acceptedAt)
          ? Effect.succeed(stored.message)
          : Effect.fail(unavailable("plan")(new Error(otherPlan)))
      })
    )
  )
})

const newPlan = Effect.fnUntraced(function* (
  { broadcast, expiresAt, rate, since }: BroadcastRef,
  given: PlanOfMessage,
  people: number | undefined,
  { floor, short = [] }: Applied
) {
  const states = yield* States
  const count = people ?? 0
  const depth = shardDepth(count)
  // A bucket without room may show a count of 0 for a channel with registrations. The count only
  // determines the number of jobs; the registrations determine who gets the broadcast.
  const isEmpty = people === 0 && !short.includes("channels")
  const isNobody = people === undefined || isEmpty || states.orderOf({ broadcast }) === "cancel"
  const shards = isNobody ? 0 : 16 ** depth
  const stride = shards === 0 ? 0 : shardsAtFirst(count / shards, rate)
  const plan: Plan = {
    broadcast,
    depth,
    shards,
    ...(stride < shards ? { stride } : {}),
    ...(people === undefined ? {} : { people }),
    floor,
    ...(since === undefined ? {} : { since }),
    ...given,
    expiresAt,
    at: yield* Clock.currentTimeMillis
  }
  return plan
})

/** How many shards get their jobs from the planner; each appends a later one as it begins. */
const shardsAtFirst = (pushesPerShard: number, rate: number | undefined): number =>
  rate === undefined
    ? Math.ceil(waitingPushes / pushesPerShard)
    : shardsAtOnce(rate, pushesPerShard)

const appendJobs = Effect.fnUntraced(function* (
  ref: ShardRef,
  { depth, floor, shards, stride }: Plan
) {
  const log = yield* EventLog
  const subject = ref.rate === undefined ? subjects.shard : subjects.limitedShard
  yield* Effect.forEach(
    shards === 0 ? [] : shardsAt(depth).slice(0, stride),
    (shard) =>
      log.once("work", {
        subject: subject(ref.broadcast, shard),
        type: "shard",
        body: { ...ref, shard, floor, ...(stride === undefined ? {} : { stride }) }
      }),
    { concurrency: appendConcurrency, discard: true }
  )
})
