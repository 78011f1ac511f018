// How long a page or a worker waits. Each wait clears its timer when it is over.

/** Time that an answer of the browser, of the service or of the site's `token` may take. */
export const answerMillis = 10_000

export const dayMillis = 24 * 3600 * 1000

export const wait = (millis: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, millis))

/** The result of `work`, or undefined if that takes longer. Rejects as `work` does. */
export const atMost = <T>(millis: number, work: Promise<T>): Promise<T | undefined> => {
  let timer: number | undefined
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, millis)
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}

/** The waits of one page, which may all be given up at once. */
export class Waits {
  #controller = new AbortController()
  #queue = new AbortController()
  /** Tasks of `run` that go on. */
  #running = 0

  /** Aborted at `giveUp`: for what waits for its turn. */
  get signal(): AbortSignal {
    return this.#queue.signal
  }

  /** Runs a task, which is given up as a whole: also the waits that it begins after `giveUp`. */
  async run<T>(task: () => Promise<T>): Promise<T> {
    this.#renew()
    this.#running += 1
    return task().finally(() => {
      this.#running -= 1
      this.#renew()
    })
  }

  #renew(): void {
    if (this.#controller.signal.aborted) this.#controller = new AbortController()
  }

  /** The result of `work`. Rejects as `work` does, after 10 s, and at `giveUp` with its reason. */
  for<T>(work: T | PromiseLike<T>): Promise<T> {
    return inTime(work, this.#controller.signal)
  }

  /** Ends all waits that have begun, and the tasks of `run`. Later ones wait as usual. */
  giveUp(reason: Error): void {
    this.#queue.abort(reason)
    this.#queue = new AbortController()
    this.#controller.abort(reason)
    if (this.#running === 0) this.#renew()
  }
}

/** The result of `work`. Rejects as `work` does, after 10 s, and when `signal` is aborted. */
export const inTime = <T>(work: T | PromiseLike<T>, signal?: AbortSignal): Promise<T> => {
  const ended = new AbortController()
  let timer: ReturnType<typeof setTimeout>
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(reject, answerMillis)
    const stop = () => reject(signal?.reason)
    if (signal?.aborted) stop()
    else signal?.addEventListener("abort", stop, { signal: ended.signal })
  })
  return Promise.race([work, late]).finally(() => {
    clearTimeout(timer)
    ended.abort()
  })
}
