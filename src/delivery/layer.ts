// The delivery stage: shard jobs and retries, both through one sender and one set of permits.
import { Effect, Layer, Semaphore } from "effect"
import { Settings } from "#config"
import { Consumers } from "#nats/stream/consumer.ts"
import { makeRetry } from "./jobs/retry.ts"
import { makeShard } from "./jobs/shard.ts"
import { Strikes } from "./jobs/strikes.ts"
import { PushClient } from "./push/client.ts"
import { Sender } from "./push/send.ts"
import { Vapid } from "./push/vapid.ts"
import { PushServices } from "./push-service/push-services.ts"

/** Retries under way at once; the permits bound what they send. */
const retriesInFlight = 64

/**
 * Runs the delivery workers while the layer lives. At its end they finish and record the pushes
 * under way.
 */
export const deliveryLayer = Layer.effectDiscard(
  Effect.gen(function* () {
    const consumers = yield* Consumers
    const { shardsInFlight, unrecordedPushesMax } = yield* Settings
    const permits = yield* Semaphore.make(unrecordedPushesMax)
    let stopping = false
    const draining = () => stopping
    yield* Effect.forkScoped(
      consumers.each("work", "deliver", shardsInFlight, yield* makeShard(permits, draining))
    )
    yield* Effect.forkScoped(
      consumers.each("work", "retry", retriesInFlight, yield* makeRetry(permits, draining))
    )
    // Finalizers run in reverse order: this one before those that wait for the fibers above.
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        stopping = true
      })
    )
  })
).pipe(
  Layer.provide(Strikes.layer),
  Layer.provide(
    Sender.layer.pipe(
      Layer.provide(Layer.mergeAll(PushClient.layer, Vapid.layer, PushServices.layer))
    )
  )
)
