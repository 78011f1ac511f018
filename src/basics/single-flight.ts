// Joins callers that want the same thing at the same time: it is fetched once, for all of them.
//
// In callbacks, because sockets look up names by them (address-filter.ts). For effects, use
// clock/single-flight.ts.

/** Gives a caller the result of the fetch. */
type Receive<Result> = (result: Result) => void

export class SingleFlight<Key, Result> {
  /** By key of a fetch that is under way: its callers. */
  readonly #callers = new Map<Key, Set<Receive<Result>>>()

  /** The fetches that are under way. */
  get size(): number {
    return this.#callers.size
  }

  /** How many callers wait for a fetch. It may have begun for callers who all left. */
  callersOf(key: Key): number {
    return this.#callers.get(key)?.size ?? 0
  }

  /**
   * Waits for the fetch of this key that is under way; begins one if there is none. `receive`, a
   * function of this caller alone, is called once, maybe at once. Returns a function by which the
   * caller leaves; the fetch goes on.
   */
  join(key: Key, receive: Receive<Result>, begin: (done: Receive<Result>) => void): () => void {
    const joined = this.#callers.get(key)
    const callers = joined ?? new Set<Receive<Result>>()
    callers.add(receive)
    if (joined === undefined) {
      this.#callers.set(key, callers)
      begin((result) => {
        this.#callers.delete(key)
        for (const each of callers) each(result)
      })
    }
    return () => void callers.delete(receive)
  }
}
