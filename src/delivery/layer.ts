// The delivery stage: shard jobs and retries, both through one sender and one set of permits.
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { States } from "#broadcasts/states.ts"
import { FairSemaphore } from "#clock/fair-semaphore.ts"
import { Settings } from "#config"
import { Caches } from "#memory/cache-memory.ts"
import { Consumers, keep } from "#nats/stream/consumer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { makeChanges } from "./changes/changes.ts"
import { makeGiveUp, makeKeepShard } from "./jobs/give-up.ts"
import { retriesAtOnce } from "./jobs/places.ts"
import { makeRecord } from "./jobs/record.ts"
import { makeRetry } from "./jobs/retry.ts"
import { makePayloads, makeShard } from "./jobs/shard.ts"
import type { JobTools } from "./jobs/tools.ts"
import { PublicKeys } from "./push/encrypt.ts"
import { PushClient } from "./push/post.ts"
import { makeSend } from "./push/send.ts"
import { Vapid } from "./push/vapid.ts"
import { Origins } from "./push-service/origins.ts"
import { makeTurns } from "./rate/turns.ts"

/**
 * Shards of broadcasts with a rate that wait for their turns in this process. Each takes up to a
 * megabyte. The others take their places after half a minute.
 */
const limitedInFlight = 32
/** Changes of the states of broadcasts that are carried out at once. */
const changesInFlight = 4

/**
 * Runs the delivery workers while the layer lives. At its end they finish and record the pushes
 * under way.
 */
export const deliveryLayer = Layer.effectDiscard(
  Effect.gen(function* () {
    const consumers = yield* Consumers
    const { known, orderOf, runOf } = yield* States
    const { shardsInFlight, unrecordedPushesMax } = yield* Settings
    let stopping = false
    const draining = () => stopping
    const tools: JobTools = {
      send: yield* makeSend,
      record: yield* makeRecord,
      publicKeys: new PublicKeys((yield* Caches).share("public-keys")),
      permits: new FairSemaphore<number>(unrecordedPushesMax),
      draining,
      turns: yield* makeTurns({ draining, orderOf }),
      orderOf,
      runOf
    }
    const payload = yield* makePayloads
    const shard = yield* makeShard(tools, payload)
    const log = yield* EventLog
    const giveUp = makeGiveUp(log)
    const keepShard = makeKeepShard(log, tools)
    const keepChange = () => Effect.succeed(keep)
    // No job is taken while a change of its broadcast may be unknown.
    for (const jobs of [
      consumers.each("work", "deliver", shardsInFlight, shard, keepShard),
      consumers.each("work", "limited", limitedInFlight, shard, keepShard),
      consumers.each("work", "retry", retriesAtOnce, yield* makeRetry(tools, payload), giveUp),
      consumers.each("log", "states", changesInFlight, yield* makeChanges(tools), keepChange)
    ])
      yield* Effect.forkScoped(Effect.andThen(known, jobs))
    // Finalizers run in reverse order: this one before those that wait for the fibers above.
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        stopping = true
      })
    )
  })
).pipe(
  Layer.provide(Layer.mergeAll(PushClient.layer, Vapid.layer, States.layer)),
  Layer.provide(Origins.layer)
)
