// Shard job -> pushes -> outcomes: reads who the shard goes to, claims it, sends and records.
import { Effect, Semaphore } from "effect"
import { Settings } from "#config"
import { type Delivery, done, later, never } from "#nats/stream/consumer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { sealedAtOnce } from "../push/sealed.ts"
import { Sender } from "../push/send.ts"
import { makeAudience } from "../recipients/audience.ts"
import { makePayloads } from "../recipients/payloads.ts"
import { makeClaim } from "./claim.ts"
import { laterOwed } from "./owed.ts"
import { conflictLeaves } from "./patience.ts"
import { makeRecord } from "./record.ts"
import { runShard, type ShardTools } from "./shard-run.ts"
import { makeStarts } from "./starts.ts"

/**
 * `draining` returns true once the process shuts down: pushes under way are finished, the rest is
 * left.
 */
export const makeShard = Effect.fnUntraced(function* (
  permits: Semaphore.Semaphore,
  draining: () => boolean
) {
  const record = yield* makeRecord
  const payload = yield* makePayloads
  const audience = yield* makeAudience
  const claim = makeClaim(yield* EventLog, record)
  const { unrecordedPushesMax } = yield* Settings
  const tools: ShardTools = {
    sender: yield* Sender,
    record,
    permits,
    draining,
    starts: yield* makeStarts(sealedAtOnce),
    concurrency: unrecordedPushesMax
  }
  // Two large shards at a time, or many small ones. Many large ones would share the permits until
  // each outcome had a handful of results.
  const admission = yield* Semaphore.make(2 * unrecordedPushesMax)

  return Effect.fnUntraced(function* ({ deliveryCount, message }: Delivery) {
    if (message.type !== "shard/1")
      return never(message.type === "malformed" ? message.reason : "not a shard job")
    const found = yield* payload(message.broadcast)
    if (found === undefined) return never("the broadcast is not in the log")
    const targets = yield* audience(message)
    const weight = Math.min(Math.max(1, targets.length), unrecordedPushesMax)
    const claimed = deliveryCount === 1 ? claim.first : claim.again
    return yield* Effect.gen(function* () {
      const past = yield* claimed(message, targets)
      if (past.final) return past.owes ? laterOwed(deliveryCount) : done
      const { left, owes } = yield* runShard(tools, message, past, targets, found.padded)
      if (left > 0) return later(0)
      return owes ? laterOwed(deliveryCount) : done
    }).pipe(conflictLeaves, admission.withPermits(weight))
  })
})
