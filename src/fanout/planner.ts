// Broadcast -> plan -> shard jobs. The planner decides once into how many shards a broadcast is
// cut, and rejects broadcasts that cannot be sent. One that starts later is planned at its start,
// which every process with a planner appends: each start names the change that it follows, so NATS
// stores one, and no lease is waited for.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type Scheduled, States, soonMillis } from "#broadcasts/states.ts"
import { wholeBroadcast } from "#broadcasts/whole-broadcast.ts"
import { lifeMillisMin, scheduledMax, scheduledOfOneMax } from "#domain/broadcast.ts"
import { changeIn, isPlannedAt } from "#domain/broadcast-state.ts"
import { type BroadcastRef, shardDepth, shardsAtOnce, sinceOf } from "#domain/job.ts"
import type { Plan } from "#domain/outcome.ts"
import type { Recipients } from "#domain/recipients.ts"
import { runForever } from "#nats/connection/again.ts"
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
  isOwn,
  type PlanOfMessage,
  readBroadcast,
  type ShardRef,
  type Start,
  wholeError
} from "./read-broadcast.ts"

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

interface Planner {
  readonly log: EventLog["Service"]
  readonly buckets: Buckets["Service"]
  readonly watermark: Watermark["Service"]
  readonly states: States["Service"]
  readonly warn: ReturnType<typeof makeRateLimitedLog>
  readonly waits: ReturnType<typeof makeRateLimitedLog>
}

/** Runs the planner until the scope of the layer closes. */
export const fanoutLayer = Layer.effectDiscard(
  Effect.gen(function* () {
    const consumers = yield* Consumers
    const planner: Planner = {
      log: yield* EventLog,
      buckets: yield* Buckets,
      watermark: yield* Watermark,
      states: yield* States,
      warn: makeRateLimitedLog("broadcasts were rejected"),
      waits: makeRateLimitedLog("broadcasts wait to be planned")
    }
    const broadcasts = consumers.each(
      ...(["log", "planner", broadcastsInFlight] as const),
      (delivery) => handle(planner, delivery),
      (delivery, reason) => giveUp(planner, delivery, reason)
    )
    yield* Effect.forkScoped(Effect.andThen(planner.states.known, broadcasts))
    yield* Effect.forkScoped(startDue(planner))
  })
).pipe(Layer.provide(States.layer))

const handle = (planner: Planner, delivery: Delivery) => {
  const broadcast = parseState(delivery.subject)
  return broadcast === undefined ? plan(planner, delivery) : planLater(planner, delivery, broadcast)
}

/** `start`: undefined where the broadcast starts when it is accepted. */
const plan = Effect.fnUntraced(function* (planner: Planner, stored: Stored, start?: Start) {
  const { log, watermark } = planner
  const wanted = readBroadcast(stored, start)
  if ("reason" in wanted) return yield* reject(planner, stored, wanted.reason)
  const { later: laterStart, publisher, ref } = wanted
  const channel = ref.channel as ChannelToken
  log.cache(stored)
  const whole = yield* wholeBroadcast(log, stored, ref.payload)
  const error = wholeError(whole)
  if (whole === undefined || error !== undefined) return yield* reject(planner, stored, error ?? "")
  if (laterStart !== undefined)
    return yield* schedule(planner, stored, ref, publisher ?? "", laterStart)
  // `states` of this process may learn of the cancellation later.
  const to = start?.isEnd === true ? undefined : whole.to
  // A recreated consumer reads LOG from its beginning. WORK has lost the old plans by then, but
  // LOG has the end of every finished broadcast.
  const isOld = (yield* Clock.currentTimeMillis) >= ref.acceptedAt + lifeMillisMin
  if (isOld && (yield* log.last("log", subjects.finished(channel, ref.broadcast))) !== undefined)
    return done
  const applied = yield* Effect.result(watermark.reached(sinceOf(ref), appliedMillis))
  if (applied._tag === "Failure") {
    const reason = String(applied.failure.cause)
    yield* planner.waits({ broadcast: ref.broadcast, reason })
    return hindered(notAppliedAfterMillis, "the projection lacks what came before")
  }
  const people = yield* peopleOf(planner, to)
  const found = yield* planOf(planner, ref, wanted.given, people, applied.success)
  yield* appendJobs(planner, ref, found)
  yield* Effect.logInfo("broadcast planned", {
    broadcast: ref.broadcast,
    publisher,
    channel: decodeToken(channel),
    people: people ?? 0,
    ...(to === undefined || to.users.length === 0 ? {} : { users: to.users.length }),
    shards: found.shards,
    ...(ref.rate === undefined ? {} : { rate: ref.rate }),
    ...(ref.redrives === undefined ? {} : { redrives: ref.redrives })
  })
  return done
})

/** Plans a broadcast that starts later than it was accepted, or is cancelled before. */
const planLater = Effect.fnUntraced(function* (
  planner: Planner,
  { at, message, seq }: Delivery,
  broadcast: number
) {
  const change = changeIn(message)
  if (change === undefined) return never("no change of a state")
  if (!isPlannedAt(change)) return done
  const stored = yield* planner.log.at("log", broadcast)
  if (stored === undefined) return never("the broadcast is not in the log")
  return yield* plan(planner, stored, {
    ...change.schedule,
    isEnd: change.type === "broadcast.cancelled/1",
    seq,
    at
  })
})

const reject = Effect.fnUntraced(function* (
  { log, warn }: Planner,
  { seq, subject }: Pick<Stored, "seq" | "subject">,
  reason: string
) {
  const body = { broadcast: seq, subject, reason, at: yield* Clock.currentTimeMillis }
  yield* log.once("log", { subject: subjects.rejected(seq), type: "broadcast.rejected/1", body })
  commandRejected("planner")
  yield* warn({ broadcast: seq, reason })
  return never(reason)
})

/** Rejects a broadcast on which the planner dies again and again. */
const giveUp = (planner: Planner, { seq, subject }: Delivery, reason: string) =>
  reject(planner, { seq: parseState(subject) ?? seq, subject }, reason)

/** The registrations and the named users; undefined: nobody is to get the broadcast. */
const peopleOf = Effect.fnUntraced(function* ({ buckets }: Planner, to: Recipients | undefined) {
  if (to === undefined) return undefined
  return (yield* countRegistrations(buckets, to.channels)) + to.users.length
})

/** The plan of a broadcast: a new one, or that of an earlier delivery of the message. */
const planOf = Effect.fnUntraced(function* (
  planner: Planner,
  ref: BroadcastRef,
  given: PlanOfMessage,
  people: number | undefined,
  applied: Applied
) {
  const { log } = planner
  const subject = subjects.plan(ref.channel as ChannelToken, ref.broadcast)
  const body = yield* newPlan(planner, ref, given, people, applied)
  return yield* log.append("work", { subject, type: "plan/1", body, expect: 0 }).pipe(
    Effect.as(body),
    Effect.catchTag("AppendConflict", () =>
      Effect.flatMap(log.last("work", subject), (stored) => {
        if (stored?.message.type !== "plan/1") return Effect.succeed(body)
        // The number belonged to another broadcast in a WORK that was restored from a later copy.
        return isSameTime(stored.message.acceptedAt, given.acceptedAt)
          ? Effect.succeed(stored.message)
          : Effect.fail(unavailable("plan")(new Error(otherPlan)))
      })
    )
  )
})

const newPlan = Effect.fnUntraced(function* (
  { states }: Planner,
  { broadcast, expiresAt, rate, since }: BroadcastRef,
  given: PlanOfMessage,
  people: number | undefined,
  { floor, short = [] }: Applied
) {
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

const appendJobs = ({ log }: Planner, ref: ShardRef, { depth, floor, shards, stride }: Plan) => {
  const subject = ref.rate === undefined ? subjects.shard : subjects.limitedShard
  return Effect.forEach(
    shards === 0 ? [] : shardsAt(depth).slice(0, stride),
    (shard) =>
      log.once("work", {
        subject: subject(ref.broadcast, shard),
        type: "shard/1",
        body: { ...ref, shard, floor, ...(stride === undefined ? {} : { stride }) }
      }),
    { concurrency: appendConcurrency, discard: true }
  )
}

/** Appends that a broadcast waits for its start, unless somebody has changed it already. */
const schedule = Effect.fnUntraced(function* (
  planner: Planner,
  stored: Stored,
  { broadcast, channel }: BroadcastRef,
  by: string,
  later: { readonly at: string }
) {
  if (yield* isTooMany(planner, stored, by)) return yield* reject(planner, stored, tooMany)
  const at = yield* Clock.currentTimeMillis
  const body = { broadcast, channel, run: 0, by, at, schedule: later }
  const subject = subjects.state(broadcast)
  yield* planner.log.once("log", { subject, type: "broadcast.scheduled/1", body })
  return done
})

const tooMany =
  `${scheduledMax} broadcasts wait for their start already, ` +
  `or ${scheduledOfOneMax} of this publisher`

/**
 * Whether a broadcast that starts later must not wait. What a gateway accepted may. A recreated
 * consumer reads broadcasts again: those that wait already, and those that were rejected, although
 * there may be room now.
 */
const isTooMany = Effect.fnUntraced(function* (
  { log, states }: Planner,
  stored: Stored,
  publisher: string
) {
  if (isOwn(stored)) return false
  if ((yield* log.last("log", subjects.state(stored.seq))) !== undefined) return false
  if ((yield* log.last("log", subjects.rejected(stored.seq))) !== undefined) return true
  return states.isFull(publisher)
})

/** A start that was stored, or refused because of another one, is heard of within this time. */
const heardMillis = 50

/** Starts that are appended at once: they are stored as one batch. */
const startsAtOnce = 128

/** Starts what is due, again and again, also after a failure. */
const startDue = (planner: Planner) =>
  Effect.andThen(
    planner.states.known,
    runForever(
      startEach(planner),
      "500 millis",
      makeRateLimitedLog("scheduled broadcasts cannot be started", Effect.logError)
    )
  )

const startEach = Effect.fnUntraced(function* (planner: Planner) {
  const { states } = planner
  while (true) {
    const now = yield* Clock.currentTimeMillis
    const scheduled = yield* states.scheduled
    const due = scheduled.filter(({ startsAt }) => startsAt <= now)
    yield* Effect.forEach(due, (each) => startOne(planner, each), {
      concurrency: startsAtOnce,
      discard: true
    })
    const first = scheduled.reduce((least, { startsAt }) => Math.min(least, startsAt), Infinity)
    const waitMillis = due.length > 0 ? heardMillis : Math.min(first - now, soonMillis)
    yield* Effect.raceFirst(Effect.sleep(waitMillis), states.scheduling)
  }
})

const startOne = Effect.fnUntraced(function* (
  { log }: Planner,
  { broadcast, channel, schedule, seq }: Scheduled
) {
  const at = yield* Clock.currentTimeMillis
  const body = { broadcast, channel, run: 0, by: "schedule", at, schedule }
  const subject = subjects.state(broadcast)
  // After a conflict, another process started the broadcast, or somebody changed it.
  yield* Effect.catchTag(
    log.append("log", { subject, type: "broadcast.started/1", body, expect: seq }),
    "AppendConflict",
    () => Effect.void
  )
})
