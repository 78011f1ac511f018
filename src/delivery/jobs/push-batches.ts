// Lets the pushes of all shards begin in small batches, one for each turn of the event loop. All at
// once, the first would leave the process after the last is encrypted: 60 microseconds each. The
// broadcasts that wait take turns.
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"

/** Waits for one turn of the event loop, in which it serves its sockets. */
const nextTurn = Effect.callback<void>((resume) => {
  setImmediate(() => resume(Effect.void))
})

/** Some pushes of one shard that begin together. */
interface Batch {
  readonly pushes: number
  readonly start: Latch.Latch
}

/** Waits until the push with this index, counted within its shard, may begin. */
export type Begin = (index: number) => Effect.Effect<void>

/** Takes the batch of the broadcast whose turn it is, which is last then. */
const takeBatch = (waiting: Map<number, Array<Batch>>): Batch => {
  const [broadcast, batches] = waiting.entries().next().value!
  waiting.delete(broadcast)
  const batch = batches.shift()!
  if (batches.length > 0) waiting.set(broadcast, batches)
  return batch
}

/** The pushes of a shard begin `batchSize` at a time; of several small ones, as many together. */
export const makePushBatches = Effect.fnUntraced(function* (batchSize: number) {
  /** By broadcast. */
  const waiting = new Map<number, Array<Batch>>()
  const hasWaiting = Latch.makeUnsafe()
  const startSome = Effect.suspend(() => {
    if (waiting.size === 0) return Effect.andThen(hasWaiting.close, hasWaiting.await)
    for (let left = batchSize; left > 0 && waiting.size > 0; ) {
      const batch = takeBatch(waiting)
      batch.start.openUnsafe()
      left -= batch.pushes
    }
    return nextTurn
  })
  yield* Effect.forkScoped(Effect.forever(startSome))
  return (broadcast: number, pushes: number): Begin => {
    const batches = Array.from(
      { length: Math.ceil(pushes / batchSize) },
      (_, i): Batch => ({
        pushes: Math.min(batchSize, pushes - i * batchSize),
        start: Latch.makeUnsafe()
      })
    )
    if (pushes > 0) waiting.set(broadcast, [...(waiting.get(broadcast) ?? []), ...batches])
    hasWaiting.openUnsafe()
    return (index) => batches[Math.floor(index / batchSize)]!.start.await
  }
})
