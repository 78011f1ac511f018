// Waits for a condition. The condition is checked after every change, not by polling.

export class Condition<S> {
  readonly #checks = new Set<() => void>()
  readonly #state: () => S

  constructor(state: () => S) {
    this.#state = state
  }

  /** Something happened: ask everybody who waits. */
  changed(): void {
    for (const check of [...this.#checks]) check()
  }

  /**
   * Resolves as soon as the predicate holds. Rejects when the predicate throws, or after the
   * timeout with the predicate's source and the text of `describe`.
   */
  waitFor(
    predicate: (state: S) => boolean,
    timeoutMillis: number,
    describe: () => string
  ): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (done: () => void) => {
        clearTimeout(timer)
        this.#checks.delete(check)
        done()
      }
      const check = () => {
        try {
          if (predicate(this.#state())) settle(resolve)
        } catch (error) {
          settle(() => reject(error))
        }
      }
      const late = () =>
        reject(new Error(`not in ${timeoutMillis} ms: ${predicate}, at ${describe()}`))
      const timer = setTimeout(() => settle(late), timeoutMillis)
      this.#checks.add(check)
      check()
    })
  }
}
