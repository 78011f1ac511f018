// Shard job -> pushes -> outcomes: reads the payload and who the shard goes to, claims the shard
// for this delivery of its job with what earlier deliveries recorded, and runs its pushes.
import * as Effect from "effect/Effect"
import { Settings } from "#config"
import type { ShardJob } from "#domain/job.ts"
import type { Recipients } from "#domain/recipients.ts"
import { type Delivery, done, later, never } from "#nats/stream/consumer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { sealedAtOnce } from "../push/encrypt.ts"
import { makeAdmission } from "../recipients/admission.ts"
import { type Audience, makeAudience } from "../recipients/audience.ts"
import { alongside, appendNext } from "../recipients/next-shards.ts"
import { makeClaim } from "./claim.ts"
import { makeHold } from "./hold.ts"
import type { Payloads } from "./payloads.ts"
import { makePushBatches } from "./push-batches.ts"
import { laterPostponed } from "./record/follow-ups.ts"
import { conflictLeaves } from "./record/until-written.ts"
import { runShard } from "./shard-run.ts"
import type { JobTools, ShardTools } from "./tools.ts"

/** A shard that a worker of an earlier run may be sending is looked at again after this time. */
const takenMillis = 500
/** A shard that is left with pushes that wait for their turns comes again after this time. */
const leftMillis = 1_000

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
      if (past === "taken") return later(takenMillis)
      const next = appendNext(log, tools, message, true)
      const run = runShard(tools, message, past, found, pushed, next)
      const { isPostponed, left } = yield* run
      const stored = Effect.succeed(!isPostponed)
      if (left > 0) return (yield* hold(delivery, message, stored)) ?? laterLeft(tools, message)
      yield* next
      return isPostponed ? laterPostponed(deliveryCount) : done
    }, conflictLeaves)
    const held = yield* hold(delivery, message, isStored)
    if (held !== undefined) return held
    const { found, leave } = yield* Effect.tapCause(
      admitted(message, pushed.to),
      // A shard that cannot be read must not stop those behind it.
      () => appendNext(log, tools, message, false)
    )
    return yield* Effect.gen(function* () {
      const heldMeanwhile = yield* hold(delivery, message, isStored)
      return heldMeanwhile ?? (yield* send(found))
    }).pipe(Effect.ensuring(leave))
  })
})
