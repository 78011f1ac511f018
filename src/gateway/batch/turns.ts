// Long work in short turns of the event loop, so that other requests are answered in between.
import { Effect } from "effect"

/**
 * Milliseconds of work before the event loop gets a turn. One item takes a few milliseconds at most,
 * and several steps may share a turn, which must stay below 50 ms.
 */
const turnMillis = 5

/** What `each` makes of every item, in order. */
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
