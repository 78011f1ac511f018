// The delivery stage: shard jobs and retries, both through one sender and one set of permits.
import { Effect, Layer, Semaphore } from "effect"
import { Settings } from "#config"
import { Consumers } from "#log/consume.ts"
import { Lanes } from "./lanes/lanes.ts"
import { PushClient } from "./push/post.ts"
import { Sender } from "./push/send.ts"
import { Vapid } from "./push/vapid.ts"
import { makeRetry } from "./retry.ts"
import { makeShard } from "./shard.ts"
import { Strikes } from "./strikes.ts"

/** Retries under way at once; the permits bound what they send. */
const retriesInFlight = 64

/** Runs the delivery workers for as long as the layer lives. Told to stop, they finish and record the pushes in hand. */
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
    // Added last, so it runs first: before the fibers above are waited for.
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        stopping = true
      })
    )
  })
).pipe(
  Layer.provide(Strikes.layer),
  Layer.provide(
    Sender.layer.pipe(Layer.provide(Layer.mergeAll(PushClient.layer, Vapid.layer, Lanes.layer)))
  )
)
