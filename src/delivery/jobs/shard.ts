// Shard job -> pushes -> outcomes: reads the payload and who the shard goes to, claims the shard
// for this delivery of its job with what earlier deliveries recorded, and runs its pushes.
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import { monotonicMillis } from "#clock/monotonic.ts"
import { Settings } from "#config"
import type { ShardJob } from "#domain/job.ts"
import { type PushResult, pushKey } from "#domain/outcome.ts"
import type { Recipients } from "#domain/recipients.ts"
import { type Delivery, done, later, never } from "#nats/stream/consumer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { UserToken } from "#streams/tokens.ts"
import { sealedAtOnce } from "../push/encrypt.ts"
import type { Target } from "../push/target.ts"
import { type Audience, makeAudience } from "../recipients/audience.ts"
import { laterPostponed, type Recorded } from "./follow-ups.ts"
import type { Payloads } from "./payloads.ts"
import { makePushBatches } from "./push-batches.ts"
import { outcomeSubject, type Record } from "./record.ts"
import { type Claimed, type Past, runShard } from "./shard-run.ts"
import type { JobTools, ShardTools } from "./tools.ts"
import { conflictLeaves } from "./until-written.ts"

const nothing: Past = { seq: 0, declared: 0, final: false, isPostponed: false, results: new Map() }

/** A target in place of a subscription that was removed. */
const removedTarget = ({ subscription, user }: PushResult): Target => ({
  user: user as UserToken,
  id: subscription,
  stored: {
    seq: 0,
    lastModified: 0,
    data: { endpoint: "https://gone.invalid/", keys: { auth: "", p256dh: "" } }
  }
})

/** Returns the past results of which removals and retry jobs may be missing. */
const unfinished = (past: Past, targets: ReadonlyArray<Target>): ReadonlyArray<Recorded> => {
  const present = new Map(targets.map((target) => [pushKey(target.user, target.id), target]))
  return [...past.results].flatMap(([key, result]): ReadonlyArray<Recorded> => {
    const target = present.get(key)
    if (target !== undefined) return [{ target, result }]
    // A removed subscription still needs a last outcome. Its retry job finds it removed and records
    // that.
    return result.fate === "retrying" ? [{ target: removedTarget(result), result }] : []
  })
}

const readPast = Effect.fnUntraced(function* (log: EventLog["Service"], subject: string) {
  if ((yield* log.last("work", subject)) === undefined) return nothing
  let past = nothing
  const results = new Map<string, PushResult>()
  yield* log.replay("work", [subject], ({ message, seq }) =>
    Effect.sync(() => {
      if (message.type !== "outcome/1") return
      for (const result of message.results)
        results.set(pushKey(result.user, result.subscription), result)
      const declared = past.declared + message.pushes
      past = { ...past, seq, declared, final: message.final, results }
    })
  )
  return past
})

/** Returns functions that claim a shard, unless nothing of it is left to send. */
const makeClaim = (log: EventLog["Service"], record: Record) => {
  /**
   * Writes the size of the shard before anything is sent: where that cannot be written, outcomes
   * could not be either. Fails with AppendConflict when another worker has the shard.
   */
  const claim = Effect.fnUntraced(function* (
    job: ShardJob,
    past: Past,
    { targets, withoutSubscription }: Audience
  ) {
    const isNew = ({ id, user }: Target) => !past.results.has(pushKey(user, id))
    const total = past.results.size + targets.filter(isNew).length
    const claimedAt = yield* monotonicMillis
    const seq = yield* record.outcome(outcomeSubject.shard(job, job.shard), past.seq, {
      broadcast: job.broadcast,
      pushes: total - past.declared,
      results: [],
      final: false,
      ...(past.seq > 0 || withoutSubscription === undefined ? {} : { withoutSubscription })
    })
    return { ...past, seq, claimedAt } satisfies Claimed
  })

  /** The past of a shard, after the writes that a killed delivery left out. */
  const readAndEnsure = Effect.fnUntraced(function* (
    job: ShardJob,
    targets: ReadonlyArray<Target>
  ) {
    const past = yield* readPast(log, outcomeSubject.shard(job, job.shard))
    // An earlier delivery may have died between the outcome and what follows from it.
    const isStored = yield* record.followUpsAgain(job, unfinished(past, targets))
    return { ...past, isPostponed: !isStored }
  })

  /** For a shard of which earlier deliveries may have recorded something. */
  const again = Effect.fnUntraced(function* (job: ShardJob, audience: Audience) {
    const past = yield* readAndEnsure(job, audience.targets)
    return past.final ? past : yield* claim(job, past, audience)
  })

  /**
   * Claims without reading; a conflict shows that another delivery began. Unless that one finished,
   * this one leaves the shard: the other may be sending, and a claim over it would send twice what
   * it has not recorded. If it died, the ack wait brings the job back.
   */
  const first = (job: ShardJob, audience: Audience) =>
    claim(job, nothing, audience).pipe(
      Effect.catchTag("AppendConflict", (conflict) =>
        Effect.filterOrFail(
          readAndEnsure(job, audience.targets),
          ({ final }) => final,
          () => conflict
        )
      )
    )

  return { again, first }
}

/**
 * Shards that are read, or were read and wait for those before them. All at once, the first would
 * be sent after the last is read.
 */
const readingMax = 8

const isClaimed = (past: Past | Claimed): past is Claimed => "claimedAt" in past

/** Returns a function that handles shard jobs. */
export const makeShard = Effect.fnUntraced(function* (jobTools: JobTools, payload: Payloads) {
  const audience = yield* makeAudience
  const claim = makeClaim(yield* EventLog, jobTools.record)
  const { unrecordedPushesMax } = yield* Settings
  const batches = yield* makePushBatches(sealedAtOnce)
  const tools: ShardTools = { ...jobTools, batches, concurrency: unrecordedPushesMax }
  // Two large shards at a time, or many small ones. Many large ones would share the permits until
  // each outcome had a handful of results.
  const admission = yield* Semaphore.make(2 * unrecordedPushesMax)
  const reading = yield* Semaphore.make(readingMax)

  /** Reads a shard and waits until it may be sent. Returns its audience and the weight of that. */
  const admitted = (job: ShardJob, to: Recipients) =>
    reading.withPermits(1)(
      Effect.gen(function* () {
        const found = yield* audience(job, to)
        const weight = Math.min(Math.max(1, found.targets.length), unrecordedPushesMax)
        yield* admission.take(weight)
        return { found, weight }
      })
    )

  return Effect.fnUntraced(function* ({ deliveryCount, message }: Delivery) {
    if (message.type !== "shard/1")
      return never(message.type === "malformed" ? message.reason : "not a shard job")
    const pushed = yield* payload(message.broadcast)
    if (pushed === undefined) return never("the broadcast is not in the log")
    const claimed = deliveryCount === 1 ? claim.first : claim.again
    const send = Effect.fnUntraced(function* (found: Audience) {
      const past = yield* claimed(message, found)
      const { isPostponed, left } = isClaimed(past)
        ? yield* runShard(tools, message, past, found, pushed)
        : { ...past, left: 0 }
      if (left > 0) return later(0)
      return isPostponed ? laterPostponed(deliveryCount) : done
    }, conflictLeaves)
    const { found, weight } = yield* admitted(message, pushed.to)
    return yield* Effect.ensuring(send(found), admission.release(weight))
  })
})
