// Reads of a bucket that are under way: several messages of one batch may change one large value.
import * as Effect from "effect/Effect"

/** By key: each returns how many bytes it read. */
export type SharedReads<E> = Map<string, Effect.Effect<number, E>>

/** Waits for a read of the key that is under way, and returns 0; or reads it. */
export const readOnce = Effect.fnUntraced(function* <E>(
  reads: SharedReads<E>,
  key: string,
  read: Effect.Effect<number, E>
) {
  const running = reads.get(key)
  if (running !== undefined) return yield* Effect.as(running, 0)
  const shared = yield* Effect.cached(read)
  reads.set(key, shared)
  return yield* Effect.ensuring(
    shared,
    Effect.sync(() => reads.delete(key))
  )
})
