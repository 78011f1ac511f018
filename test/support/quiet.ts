// Waits for cases without an event to await: for a time that a document promises, and to see that
// nothing happens.
import { setTimeout } from "node:timers/promises"
import { isDeepStrictEqual } from "node:util"

/** Milliseconds between two reads. */
const pollMillis = 100

/** Waits for a time that belongs to the case: "within a second", "frozen for a minute". */
export const elapsed = (millis: number): Promise<void> => setTimeout(millis)

/**
 * Shows that nothing happens: rejects as soon as `read` returns something else than at first.
 * Returns what it read.
 */
export const unchanged = async <A>(read: () => A | Promise<A>, millis: number): Promise<A> => {
  const first = await read()
  const end = performance.now() + millis
  while (performance.now() < end) {
    await setTimeout(Math.min(pollMillis, millis / 4))
    const now = await read()
    if (!isDeepStrictEqual(now, first))
      throw new Error(`not unchanged for ${millis} ms: ${String(first)}, then ${String(now)}`)
  }
  return first
}

/** Waits until `read` has returned the same for `millis`. Rejects after `timeoutMillis`. */
export const settled = async <A>(
  read: () => A | Promise<A>,
  millis: number,
  timeoutMillis = 50_000
): Promise<A> => {
  const begin = performance.now()
  let [last, since] = [await read(), begin]
  while (performance.now() - since < millis) {
    if (performance.now() - begin > timeoutMillis)
      throw new Error(`not settled in ${timeoutMillis} ms: ${String(last)}`)
    await setTimeout(pollMillis)
    const now = await read()
    if (!isDeepStrictEqual(now, last)) [last, since] = [now, performance.now()]
  }
  return last
}
