// Shard job -> pushes -> outcomes: reads the payload and who the shard goes to, claims the shard
// for this delivery of its job with what earlier deliveries recorded, and runs its pushes. The
// payload of a broadcast is read once for all its jobs.
import * as Effect from "effect/Effect"
import { type WholeBroadcast, wholeBroadcast } from "#broadcasts/whole-broadcast.ts"
import { Settings } from "#config"
import { type BroadcastBody, lookupLocale, payloadOf } from "#domain/broadcast.ts"
import type { BroadcastRef, ShardJob } from "#domain/job.ts"
import type { Message } from "#domain/messages.ts"
import type { Recipients } from "#domain/recipients.ts"
import { Caches, MemoryCache } from "#memory/cache-memory.ts"
import { type Delivery, done, hindered, later, never } from "#nats/stream/consumer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { type WholeBroadcast, wholeBroadcast } from "#nats/stream/whole-broadcast.ts"
import type { Target } from "../attempt.ts"
import { pad, sealedAtOnce } from "../push/encrypt.ts"
import { type Audience, makeAdmission, makeAudience } from "../recipients/audience.ts"
import { alongside, appendNext, isPausedOrOld, makeHold } from "./next-jobs.ts"
import { conflictLeaves, laterPostponed } from "./record.ts"
import { makeClaim } from "./shard-record.ts"
import { makePushBatches, runShard } from "./shard-run.ts"
import type { JobTools, Payload, Payloads, ShardTools, Variant } from "./tools.ts"

/** A shard that a worker of an earlier run may be sending is looked at again after this time. */
const takenMillis = 500
/** A shard that is left with pushes that wait for their turns comes again after this time. */
const leftMillis = 1_000

/** Bytes of memory: a variant with its language; a user, channel or payload with its objects. */
const variantBytes = 300
const itemBytes = 100

const paddedOf = (data: BroadcastBody["data"]): Buffer | undefined => {
  const payload = payloadOf(data)
  return payload === undefined ? undefined : pad(payload)
}

const bytesOf = (variants: ReadonlyArray<Variant>, { channels, except, users }: Recipients) =>
  variants.reduce((sum, { padded }) => sum + variantBytes + (padded?.length ?? 0), 0) +
  itemBytes * (1 + channels.length + except.length + users.length)

const readPayload = ({ body, to }: WholeBroadcast): Payload => {
  const others: Variant = { padded: paddedOf(body.data) }
  const variants = new Map(
    Object.entries(body.data_by_locale ?? {}).map(([locale, data]): [string, Variant] => [
      locale.toLowerCase(),
      { padded: paddedOf(data), locale }
    ])
  )
  const variantOf = ({ stored }: Target) => {
    const { locale } = stored.data
    return (
      lookupLocale(typeof locale === "string" ? locale : "", (tag) => variants.get(tag)) ?? others
    )
  }
  return {
    variantOf: variants.size === 0 ? () => others : variantOf,
    to,
    bytes: bytesOf([others, ...variants.values()], to)
  }
}

/**
 * Returns a function that reads the payload of a broadcast and to whom it goes, once: the same
 * bytes for every push, never copied into a job. Undefined: LOG does not have the broadcast.
 */
export const makePayloads: Effect.Effect<Payloads, never, EventLog> = Effect.gen(function* () {
  const log = yield* EventLog
  const memory = new MemoryCache<Payload>((yield* Caches).share("payloads"), 1)
  return Effect.fnUntraced(function* ({ broadcast, payload }: BroadcastRef) {
    const key = String(broadcast)
    const known = memory.get(key)
    if (known !== undefined) return known
    const stored = yield* log.at("log", broadcast)
    const whole = stored === undefined ? undefined : yield* wholeBroadcast(log, stored, payload)
    if (whole === undefined) return undefined
    const read = readPayload(whole)
    memory.set(key, read, read.bytes)
    return read
  })
})

/** The acknowledgement of a shard that has pushes left. */
const laterLeft = ({ draining }: JobTools, { rate }: ShardJob) =>
  later(rate === undefined || draining() ? 0 : leftMillis)

/** Returns a function that handles shard jobs. */
export const makeShard = Effect.fnUntraced(function* (jobTools: JobTools, payload: Payloads) {
  const audience = yield* makeAudience
  const log = yield* EventLog
  const { pushTimeoutMillis, unrecordedPushesMax } = yield* Settings
  const claim = makeClaim(log, jobTools.record, pushTimeoutMillis)
  const hold = makeHold(log, jobTools)
  const batches = yield* makePushBatches(sealedAtOnce)
  const tools: ShardTools = { ...jobTools, batches, concurrency: unrecordedPushesMax }
  const admitted = makeAdmission(audience, unrecordedPushesMax)

  /** Stores what an earlier delivery may have left out. False: some of it is postponed. */
  const ensured = Effect.fnUntraced(function* (job: ShardJob, to: Recipients) {
    const { targets } = yield* audience(job, to)
    return !(yield* claim.readAndEnsure(job, targets)).isPostponed
  })

  /** Ends a delivery that leaves pushes to the next one. */
  const leave = (delivery: Delivery, job: Message<"shard/1">, isPostponed: boolean) =>
    isPausedOrOld(tools, job)
      ? hold(delivery, job, Effect.succeed(!isPostponed))
      : Effect.succeed(laterLeft(tools, job))

  return Effect.fnUntraced(function* (delivery: Delivery) {
    const { deliveryCount, message } = delivery
    if (message.type !== "shard/1")
      return never(message.type === "malformed" ? message.reason : "not a shard job")
    const pushed = yield* payload(message)
    if (pushed === undefined) return never("the broadcast is not in the log")
    const isFirst = deliveryCount === 1 && message.run === undefined
    const isStored = isFirst ? undefined : ensured(message, pushed.to)
    const send = Effect.fnUntraced(function* (found: Audience) {
      const claimed = isFirst ? claim.first(message, found) : claim.again(message, found)
      // Both wait for the disk of nats-server. One after the other would delay the first push.
      const past = yield* alongside(claimed, appendNext(log, tools, message, false))
      if (past === "taken") return hindered(takenMillis, "another worker has the shard")
      const next = appendNext(log, tools, message, true)
      const run = runShard(tools, message, past, found, pushed, next)
      const { isPostponed, left } = yield* run
      if (left > 0) return yield* leave(delivery, message, isPostponed)
      yield* next
      return isPostponed ? laterPostponed(deliveryCount) : done
    }, conflictLeaves)
    if (isPausedOrOld(tools, message)) return yield* hold(delivery, message, isStored)
    const { endTurn, found } = yield* Effect.tapCause(
      admitted(message, pushed.to),
      // A shard that cannot be read must not stop those behind it.
      () => appendNext(log, tools, message, false)
    )
    return yield* Effect.suspend(() =>
      isPausedOrOld(tools, message) ? hold(delivery, message, isStored) : send(found)
    ).pipe(Effect.ensuring(endTurn))
  })
})
