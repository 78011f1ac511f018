// Broadcast -> plan -> shard jobs. The planner decides once into how many shards a broadcast is
// cut, and rejects broadcasts that cannot be sent.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import {
  broadcastIdIn,
  expiresAtOf,
  fitsOnePush,
  lifeMillisMin,
  payloadBytesMax,
  publisherOf,
  readHeaders,
  redrivesHeader,
  shardDepth
} from "#domain/broadcast.ts"
import type { BroadcastRef, ShardJob } from "#domain/job.ts"
import type { Plan } from "#domain/outcome.ts"
import type { Recipients } from "#domain/recipients.ts"
import { unavailable } from "#nats/connection/errors.ts"
import { isSameTime } from "#nats/follower/marks.ts"
import { States } from "#nats/follower/states.ts"
import { type Applied, appliedMillis, Watermark } from "#nats/follower/watermark.ts"
import { countRegistrations } from "#nats/kv/audience.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { Consumers, type Delivery, done, later, never } from "#nats/stream/consumer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { wholeBroadcast } from "#nats/stream/whole-broadcast.ts"
import { streams } from "#streams/index.ts"
import { parseBroadcast, subjects } from "#streams/subjects.ts"
import {
  type ChannelToken,
  channelBytesMax,
  decodeToken,
  directToken,
  shardsAt
} from "#streams/tokens.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"

/** Broadcasts at a time: enough that many plans are stored as one batch. */
const broadcastsInFlight = 128
/** Jobs appended at once. 4096 jobs take 50 to 100 ms. */
const appendConcurrency = 128
const notAppliedAfterMillis = 1_000

const noChannel =
  `the subject names no channel: an id is 1 to ${channelBytesMax} bytes without a slash, ` +
  "and all but A-Z a-z 0-9 _ - are =XX, in upper case"

const otherPlan =
  `${streams.work.name} has another broadcast of this number: stop all processes, ` +
  "run `bellcast rebuild`"

/** Sources that are Bellcast itself: the gateway checks who may send to whom. */
const ownSources = ["rest", "redrive"]
const notOwn = "only Bellcast itself publishes broadcasts to users or to several channels"

const noParts = `${streams.log.name} lacks a part of the broadcast before it`

const tooLarge = `the payload is larger than ${payloadBytesMax} bytes`

/** The part that all jobs of a broadcast share. */
type ShardRef = Omit<ShardJob, "shard" | "floor">

interface Wanted {
  readonly ref: ShardRef
  /** Undefined: the message does not say. */
  readonly publisher: string | undefined
}

/** The jobs' common part, or the reason of a rejection. */
const read = (delivery: Delivery): Wanted | { readonly reason: string } => {
  const place = parseBroadcast(delivery.subject)
  if (place === undefined) return { reason: noChannel }
  if (delivery.message.type === "malformed") return { reason: delivery.message.reason }
  const isDirect = place.channel === directToken
  if (delivery.message.type !== (isDirect ? "direct/1" : "broadcast/1"))
    return { reason: `${delivery.message.type} is no broadcast on this subject` }
  if (isDirect && !ownSources.includes(place.source)) return { reason: notOwn }
  const { errors, headers } = readHeaders((name) => delivery.header(name))
  if (errors.length > 0) return { reason: errors.map(({ description }) => description).join("; ") }
  const { topic, ttlSeconds, urgency } = headers
  const redrives = delivery.header(redrivesHeader)
  if (redrives !== undefined && broadcastIdIn(redrives) === undefined)
    return { reason: `${redrivesHeader} must be the id of a broadcast` }
  return {
    publisher: publisherOf(place.source, delivery.header),
    ref: {
      broadcast: delivery.seq,
      channel: place.channel,
      acceptedAt: delivery.at,
      expiresAt: expiresAtOf(delivery.at, ttlSeconds),
      urgency,
      ...(topic === undefined ? {} : { topic }),
      ...(redrives === undefined ? {} : { redrives: Number(redrives) })
    }
  }
}

interface Planner {
  readonly log: EventLog["Service"]
  readonly buckets: Buckets["Service"]
  readonly watermark: Watermark["Service"]
  readonly states: States["Service"]
  readonly warn: ReturnType<typeof makeRateLimitedLog>
}

const reject = Effect.fnUntraced(function* (
  { log, warn }: Planner,
  { seq, subject }: Delivery,
  reason: string
) {
  const body = { broadcast: seq, subject, reason, at: yield* Clock.currentTimeMillis }
  yield* log.once("log", { subject: subjects.rejected(seq), type: "broadcast.rejected/1", body })
  yield* warn({ broadcast: seq, reason })
  return never(reason)
})

const newPlan = Effect.fnUntraced(function* (
  { buckets, states }: Planner,
  { acceptedAt, broadcast, expiresAt }: BroadcastRef,
  { channels, users }: Recipients,
  { floor, short = [] }: Applied
) {
  const people = (yield* countRegistrations(buckets, channels)) + users.length
  const depth = shardDepth(people)
  // A bucket without room may show a count of 0 for a channel with registrations. The count only
  // determines the number of jobs; the registrations determine who gets the broadcast.
  const isEmpty = people === 0 && !short.includes("channels")
  const isNobody = isEmpty || states.orderOf({ broadcast }) === "cancel"
  const plan: Plan = {
    broadcast,
    depth,
    shards: isNobody ? 0 : 16 ** depth,
    floor,
    acceptedAt,
    expiresAt,
    at: yield* Clock.currentTimeMillis
  }
  return plan
})

/** The plan of a broadcast: a new one, or that of an earlier delivery of the message. */
const planOf = Effect.fnUntraced(function* (
  planner: Planner,
  ref: BroadcastRef,
  to: Recipients,
  applied: Applied
) {
  const { log } = planner
  const subject = subjects.plan(ref.channel as ChannelToken, ref.broadcast)
  const body = yield* newPlan(planner, ref, to, applied)
  return yield* log.append("work", { subject, type: "plan/1", body, expect: 0 }).pipe(
    Effect.as(body),
    Effect.catchTag("AppendConflict", () =>
      Effect.flatMap(log.last("work", subject), (stored) => {
        if (stored?.message.type !== "plan/1") return Effect.succeed(body)
        // The number belonged to another broadcast in a WORK that was restored from a later copy.
        return isSameTime(stored.message.acceptedAt, ref.acceptedAt)
          ? Effect.succeed(stored.message)
          : Effect.fail(unavailable("plan")(new Error(otherPlan)))
      })
    )
  )
})

const appendJobs = ({ log }: Planner, ref: ShardRef, { depth, floor, shards }: Plan) =>
  Effect.forEach(
    shards === 0 ? [] : shardsAt(depth),
    (shard) =>
      log.once("work", {
        subject: subjects.shard(ref.broadcast, shard),
        type: "shard/1",
        body: { ...ref, shard, floor }
      }),
    { concurrency: appendConcurrency, discard: true }
  )

const handle = Effect.fnUntraced(function* (planner: Planner, delivery: Delivery) {
  const { log, watermark } = planner
  const wanted = read(delivery)
  if ("reason" in wanted) return yield* reject(planner, delivery, wanted.reason)
  const { publisher, ref } = wanted
  const channel = ref.channel as ChannelToken
  log.cache(delivery)
  const whole = yield* wholeBroadcast(log, delivery)
  if (whole === undefined) return yield* reject(planner, delivery, noParts)
  const { body, to } = whole
  if (!fitsOnePush(body)) return yield* reject(planner, delivery, tooLarge)
  // A recreated consumer reads LOG from its beginning. WORK has lost the old plans by then, but
  // LOG has the end of every finished broadcast.
  const isOld = (yield* Clock.currentTimeMillis) >= ref.acceptedAt + lifeMillisMin
  if (isOld && (yield* log.last("log", subjects.finished(channel, ref.broadcast))) !== undefined)
    return done
  const applied = yield* Effect.result(watermark.reached(ref.broadcast, appliedMillis))
  // No projector runs at the moment: the broadcast waits.
  if (applied._tag === "Failure") return later(notAppliedAfterMillis)
  const plan = yield* planOf(planner, ref, to, applied.success)
  yield* appendJobs(planner, ref, plan)
  yield* Effect.logInfo("broadcast planned", {
    broadcast: ref.broadcast,
    publisher,
    channel: decodeToken(channel),
    ...(to.users.length === 0 ? {} : { users: to.users.length }),
    shards: plan.shards,
    ...(ref.redrives === undefined ? {} : { redrives: ref.redrives })
  })
  return done
})

/** Runs the planner until the scope of the layer closes. */
export const fanoutLayer = Layer.effectDiscard(
  Effect.gen(function* () {
    const consumers = yield* Consumers
    const planner: Planner = {
      log: yield* EventLog,
      buckets: yield* Buckets,
      watermark: yield* Watermark,
      states: yield* States,
      warn: makeRateLimitedLog("broadcasts were rejected")
    }
    const broadcasts = consumers.each("log", "planner", broadcastsInFlight, (delivery) =>
      handle(planner, delivery)
    )
    yield* Effect.forkScoped(Effect.andThen(planner.states.known, broadcasts))
  })
).pipe(Layer.provide(States.layer))
