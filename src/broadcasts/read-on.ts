// Reads lists that come in pages.
import * as Effect from "effect/Effect"

interface Page<A, P> {
  readonly rows: ReadonlyArray<A>
  /** Where the list goes on; undefined: it is complete. */
  readonly next: P | undefined
}

/**
 * Reads page after page until there are `limit` rows, or all. `look` reads at most so many rows
 * from a place on, and may find fewer although the list goes on.
 */
export const readOn = Effect.fnUntraced(function* <A, P, E, R>(
  limit: number,
  look: (from: P | undefined, limit: number) => Effect.Effect<Page<A, P>, E, R>
) {
  const all: Array<A> = []
  let from: P | undefined
  do {
    const { next, rows } = yield* look(from, limit - all.length)
    for (const row of rows) all.push(row)
    from = next
  } while (from !== undefined && all.length < limit)
  return all
})
