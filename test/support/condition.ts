// Waiting for a condition that only changes when something happens: asked again after every change, never by the clock.

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

  /** Resolves as soon as the predicate holds; rejects when it throws or after the timeout, with the predicate and what `describe` says. */
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
