// The mass-gone guard of one push service: when most responses say "gone", the service itself, or
// what stands in front of it (a captive proxy, a wrong DNS entry), is in trouble, not the
// subscriptions. Pure: callers give the time.

const sliceMillis = 30_000
/** Ten slices, five minutes. Older responses say nothing about the service as it is now. */
const slices = 10
/** Fewer responses prove nothing. A process removes about so many before the guard can hold. */
const answersMin = 50
/**
 * Trust returns on fewer, as removals wait for it; not on none, or a quiet hour would return it.
 */
const answersToTrustMin = 10
const goneShareMax = 0.5
/**
 * "Gone" responses until the counts are urgent: the most that each worker removes before it is
 * told.
 */
const urgentGonesMax = 10

/** What one worker counted. */
export interface Counted {
  readonly answers: number
  readonly gone: number
}

export type GuardChange = "holds" | "trusts" | undefined

export class Guard {
  readonly #answers = new Array<number>(slices).fill(0)
  readonly #gones = new Array<number>(slices).fill(0)
  #slice = 0
  #answersSum = 0
  #gonesSum = 0
  #holding = false
  #unpublished = { answers: 0, gone: 0 }

  /** While true, "gone" is not believed. */
  get holding(): boolean {
    return this.#holding
  }

  /** Whether other workers need the counts at once. */
  get isUrgent(): boolean {
    return this.#unpublished.gone >= urgentGonesMax
  }

  /** Counts a response. Returns what changes with it. */
  note(isGone: boolean, now: number): GuardChange {
    const gone = isGone ? 1 : 0
    this.#unpublished.answers += 1
    this.#unpublished.gone += gone
    this.#count(1, gone, now)
    return this.#weigh()
  }

  /**
   * Merges another worker's counts. `holds`, that its guard holds, is believed until this one has
   * enough responses to know better.
   */
  merge(counted: Counted, holds: boolean, now: number): GuardChange {
    this.#count(counted.answers, counted.gone, now)
    if (!holds || this.#holding || this.#answersSum >= answersToTrustMin) return this.#weigh()
    this.#holding = true
    return "holds"
  }

  /** Returns what was counted here since the last call. */
  takeCounts(): Counted {
    const taken = this.#unpublished
    this.#unpublished = { answers: 0, gone: 0 }
    return taken
  }

  #advance(now: number): void {
    const current = Math.floor(now / sliceMillis)
    const first = Math.max(this.#slice + 1, current - slices + 1)
    for (let next = first; next <= current; next++) {
      this.#answersSum -= this.#answers[next % slices]!
      this.#gonesSum -= this.#gones[next % slices]!
      this.#answers[next % slices] = 0
      this.#gones[next % slices] = 0
    }
    this.#slice = current
  }

  #count(answers: number, gone: number, now: number): void {
    this.#advance(now)
    this.#answers[this.#slice % slices]! += answers
    this.#answersSum += answers
    this.#gones[this.#slice % slices]! += gone
    this.#gonesSum += gone
  }

  #weigh(): GuardChange {
    const isSuspicious = this.#gonesSum > this.#answersSum * goneShareMax
    const needed = this.#holding ? answersToTrustMin : answersMin
    if (isSuspicious === this.#holding || this.#answersSum < needed) return undefined
    this.#holding = isSuspicious
    return isSuspicious ? "holds" : "trusts"
  }
}
