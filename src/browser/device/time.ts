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

  /** Aborted at `giveUp`. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** The result of `work`. Rejects as `work` does, after 10 s, and at `giveUp` with its reason. */
  for<T>(work: T | PromiseLike<T>): Promise<T> {
    return inTime(work, this.signal)
  }

  /** Ends all waits that have begun. Later ones wait as usual. */
  giveUp(reason: Error): void {
    this.#controller.abort(reason)
    this.#controller = new AbortController()
  }
}

/** The result of `work`. Rejects as `work` does, after 10 s, and when `signal` is aborted. */
export const inTime = <T>(work: T | PromiseLike<T>, signal?: AbortSignal): Promise<T> => {
  const ended = new AbortController()
  let timer: ReturnType<typeof setTimeout>
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(reject, answerMillis)
    const stop = () => reject(signal?.reason)
    signal?.addEventListener("abort", stop, { signal: ended.signal })
  })
  return Promise.race([work, late]).finally(() => {
    clearTimeout(timer)
    ended.abort()
  })
}
