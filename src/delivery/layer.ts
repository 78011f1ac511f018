// The delivery stage: handles jobs of shards and retries, and changes of the states of broadcasts.
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { States } from "#broadcasts/states.ts"
import { Group } from "#children/group.ts"
import { Settings } from "#config"
import { Consumers, keep } from "#nats/stream/consumer.ts"
import { handleChange } from "./changes/changes.ts"
import { Draining } from "./draining.ts"
import { Elapsed } from "./elapsed.ts"
import { Payloads } from "./jobs/payload.ts"
import { Permits, PushMetrics } from "./jobs/record.ts"
import { giveUpRetry, handleRetry, RetryPlaces, retriesAtOnce } from "./jobs/retry.ts"
import { handleShard, keepShard, PushBatches } from "./jobs/shard.ts"
import { Evidence } from "./jobs/strikes.ts"
import { PublicKeys } from "./push/encrypt.ts"
import { PushClient } from "./push/post.ts"
import { Vapid } from "./push/vapid.ts"
import { Origins } from "./push-service/origins.ts"
import { PushServices } from "./push-service/push-services.ts"
import { Turns } from "./rate/turns.ts"
import { Admission } from "./recipients/admission.ts"
import { Audiences } from "./recipients/audience.ts"

/**
 * Shards of broadcasts with a rate that wait for their turns in this process. Each takes up to a
 * megabyte. The others take their places after half a minute.
 */
const limitedInFlight = 32
/** Changes of the states of broadcasts that are carried out at once. */
const changesInFlight = 4

/** Services that shards, retries and changes share. The last four serve the others, too. */
const shared = Layer.mergeAll(
  Permits.layer,
  Elapsed.layer,
  PushBatches.layer,
  RetryPlaces.layer,
  Payloads.layer,
  PublicKeys.layer,
  Admission.layer,
  Turns.layer,
  PushServices.layer,
  PushClient.layer,
  Vapid.layer,
  Evidence.layer,
  PushMetrics.layer
).pipe(
  Layer.provideMerge(Layer.mergeAll(Audiences.layer, Draining.layer, Origins.layer, States.layer))
)

/**
 * Runs the delivery workers while the layer lives. At its end they finish and record the pushes
 * under way.
 */
export const deliveryLayer = Layer.effectDiscard(
  Effect.gen(function* () {
    const consumers = yield* Consumers
    const { known } = yield* States
    const draining = yield* Draining
    const { part } = yield* Group
    const { shardsInFlight } = yield* Settings
    const keepChange = () => Effect.succeed(keep)
    // No job is taken while a change of its broadcast may be unknown.
    const start = <R>(jobs: Effect.Effect<never, never, R>) =>
      Effect.forkScoped(Effect.andThen(known, jobs))
    /** So many workers as this process may ever have, and how many it may have now. */
    const hands = (whole: number) => [part(whole), () => part(whole)] as const
    const [shards, shardsNow] = hands(shardsInFlight)
    const [limited, limitedNow] = hands(limitedInFlight)
    const [retries, retriesNow] = hands(retriesAtOnce)
    yield* start(consumers.each("work", "deliver", shards, handleShard, keepShard, shardsNow))
    yield* start(consumers.each("work", "limited", limited, handleShard, keepShard, limitedNow))
    yield* start(consumers.each("work", "retry", retries, handleRetry, giveUpRetry, retriesNow))
    yield* start(consumers.each("log", "states", changesInFlight, handleChange, keepChange))
    // Finalizers run in reverse order: this one before those that wait for the fibers above.
    yield* Effect.addFinalizer(() => draining.begin)
  })
).pipe(Layer.provide(shared))
