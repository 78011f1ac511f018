// Broadcast -> plan -> shard jobs: decides once how a channel is cut, and refuses what cannot be sent.
import { Clock, Effect, Layer } from "effect"
import { Settings } from "#config"
import {
  fitsOnePush,
  payloadBytesMax,
  readHeaders,
  redrivesHeader,
  shardDepth
} from "#domain/broadcast.ts"
import type { BroadcastRef, ShardJob } from "#domain/job.ts"
import type { Plan } from "#domain/outcome.ts"
import { type Applied, Watermark } from "#nats/follower/watermark.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { type Ack, Consumers, type Delivery, done, later, never } from "#nats/stream/consumer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { keys } from "#streams/buckets.ts"
import { parseBroadcast, subjects } from "#streams/subjects.ts"
import { type ChannelToken, channelBytesMax, shardsAt } from "#streams/tokens.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"

/** So many that the plans of many small broadcasts are stored together. */
const plannersInFlight = 128
/** Jobs published at once; 4096 take 50 to 100 ms. */
const publishConcurrency = 128
/** Pushes need some time to reach everybody, whatever the publisher asks for. */
const lifeMillisMin = 10_000
const notAppliedAfterMillis = 1_000

const noChannel = `the subject names no channel: an id is 1 to ${channelBytesMax} bytes without a slash, and all but A-Z a-z 0-9 _ - are =XX, in upper case`

/** What all jobs of a broadcast have in common. */
type ShardRef = Omit<ShardJob, "shard" | "floor">

/** What is to be sent, or why it is not. */
const read = (
  delivery: Delivery,
  ttlSecondsDefault: number
): { readonly ref: ShardRef; readonly channel: ChannelToken } | { readonly reason: string } => {
  const place = parseBroadcast(delivery.subject)
  if (place === undefined) return { reason: noChannel }
  if (delivery.message.type === "malformed") return { reason: delivery.message.reason }
  if (delivery.message.type !== "broadcast/1")
    return { reason: `${delivery.message.type} is no broadcast` }
  const { faults, headers } = readHeaders((name) => delivery.header(name), ttlSecondsDefault)
  if (faults.length > 0) return { reason: faults.map(({ description }) => description).join("; ") }
  if (!fitsOnePush(delivery.message))
    return { reason: `the payload is larger than ${payloadBytesMax} bytes` }
  const { topic, ttlSeconds, urgency } = headers
  const redrives = delivery.header(redrivesHeader)
  if (redrives !== undefined && !/^[1-9]\d{0,14}$/.test(redrives))
    return { reason: `${redrivesHeader} must be the id of a broadcast` }
  return {
    channel: place.channel,
    ref: {
      broadcast: delivery.seq,
      channel: place.channel,
      acceptedAt: delivery.at,
      expiresAt: delivery.at + Math.max(ttlSeconds * 1000, lifeMillisMin),
      urgency,
      ...(topic === undefined ? {} : { topic }),
      ...(redrives === undefined ? {} : { redrives: Number(redrives) })
    }
  }
}

const plan = Effect.gen(function* () {
  const log = yield* EventLog
  const buckets = yield* Buckets
  const watermark = yield* Watermark
  const settings = yield* Settings
  const warn = makeRateLimitedLog("broadcasts were refused")

  const reject = Effect.fnUntraced(function* ({ seq, subject }: Delivery, reason: string) {
    const body = { broadcast: seq, subject, reason, at: yield* Clock.currentTimeMillis }
    yield* log.once("log", { subject: subjects.rejected(seq), type: "broadcast.rejected/1", body })
    yield* warn({ broadcast: seq, reason })
    return never(reason)
  })

  /** The plan of a broadcast: made now, or the one that an earlier delivery of the message made. */
  const planOf = Effect.fnUntraced(function* (
    ref: BroadcastRef,
    channel: ChannelToken,
    { floor, short = [] }: Applied
  ) {
    const entry = yield* buckets.get("channels", keys.channelRegistrations(channel))
    const registrations = entry?.value.registrations ?? 0
    const depth = shardDepth(registrations)
    // A count that there was no room for may be 0 where somebody is registered. Who is reached
    // depends on the registrations alone; the count only says how many jobs that makes.
    const isNobody = registrations === 0 && !short.includes("channels")
    const subject = subjects.plan(channel, ref.broadcast)
    const { acceptedAt, broadcast, expiresAt } = ref
    const at = yield* Clock.currentTimeMillis
    const body: Plan = {
      broadcast,
      depth,
      shards: isNobody ? 0 : 16 ** depth,
      floor,
      acceptedAt,
      expiresAt,
      at
    }
    return yield* log.append("work", { subject, type: "plan/1", body, expect: 0 }).pipe(
      Effect.as(body),
      Effect.catchTag("AppendConflict", () =>
        log
          .last("work", subject)
          .pipe(Effect.map((stored) => (stored?.message.type === "plan/1" ? stored.message : body)))
      )
    )
  })

  return Effect.fnUntraced(function* (delivery: Delivery) {
    const wanted = read(delivery, settings.ttlSecondsDefault)
    if ("reason" in wanted) return yield* reject(delivery, wanted.reason)
    const { channel, ref } = wanted
    log.cache(delivery)
    // A consumer made anew reads LOG from its beginning; WORK has forgotten the old plans by then, LOG has not forgotten how it ended.
    const over = (yield* Clock.currentTimeMillis) >= ref.expiresAt
    if (over && (yield* log.last("log", subjects.finished(channel, ref.broadcast))) !== undefined)
      return done
    const applied = yield* Effect.result(
      watermark.reached(ref.broadcast, settings.appliedTimeoutMillis)
    )
    // No projector at the moment. The broadcast waits; nothing is lost.
    if (applied._tag === "Failure") return later(notAppliedAfterMillis)
    const { depth, floor, shards } = yield* planOf(ref, channel, applied.success)
    yield* Effect.forEach(
      shards === 0 ? [] : shardsAt(depth),
      (shard) =>
        log.once("work", {
          subject: subjects.shard(ref.broadcast, shard),
          type: "shard/1",
          body: { ...ref, shard, floor }
        }),
      { concurrency: publishConcurrency, discard: true }
    )
    return done as Ack
  })
})

/** Runs the planner for as long as the layer lives. */
export const fanoutLayer = Layer.effectDiscard(
  Effect.gen(function* () {
    const consumers = yield* Consumers
    yield* Effect.forkScoped(consumers.each("log", "planner", plannersInFlight, yield* plan))
  })
)
