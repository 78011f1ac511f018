// Splits long work into short turns of the event loop, so that other requests run in between.
import * as Effect from "effect/Effect"

/**
 * How long one turn works. A turn must stay below 50 ms; one item takes a few milliseconds, and
 * several steps of a request may share a turn.
 */
const turnMillis = 5

/** Maps items in order, and yields to other fibers after every turn. */
export const mapInTurns = Effect.fnUntraced(function* <A, B>(
  items: ReadonlyArray<A>,
  each: (item: A) => B
) {
  const results: Array<B> = []
  let ends = performance.now() + turnMillis
  for (const item of items) {
    if (performance.now() > ends) {
      yield* Effect.yieldNow
      ends = performance.now() + turnMillis
    }
    results.push(each(item))
  }
  return results
})
