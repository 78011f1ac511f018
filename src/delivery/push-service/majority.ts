// Whether most of the latest events are of one kind: responses that say "gone" (mass-gone.ts), or
// pushes that end with a strike (../jobs/record/strikes.ts). Pure: callers give the time.

const sliceMillis = 30_000
/** Ten slices, five minutes. Older events say nothing about now. */
const slices = 10
/** Fewer events prove no majority. */
const eventsMin = 50
/** A majority ends with fewer; not with none, or a quiet hour would end it. */
const eventsToEndMin = 10
const shareMax = 0.5

export class Majority {
  readonly #all = new Array<number>(slices).fill(0)
  readonly #ofKind = new Array<number>(slices).fill(0)
  #slice = 0
  #allSum = 0
  #ofKindSum = 0
  #holds = false

  /** Whether most of the events are of the kind. */
  get holds(): boolean {
    return this.#holds
  }

  /** Adds events at `now`: `ofKind` of `all`. */
  add(all: number, ofKind: number, now: number): void {
    this.#advance(now)
    this.#all[this.#slice % slices]! += all
    this.#allSum += all
    this.#ofKind[this.#slice % slices]! += ofKind
    this.#ofKindSum += ofKind
    const needed = this.#holds ? eventsToEndMin : eventsMin
    if (this.#allSum >= needed) this.#holds = this.#ofKindSum > this.#allSum * shareMax
  }

  /**
   * Takes over the majority that another process found. Does nothing if this process has counted
   * enough events to end a majority.
   */
  believe(): void {
    if (this.#allSum < eventsToEndMin) this.#holds = true
  }

  #advance(now: number): void {
    const current = Math.floor(now / sliceMillis)
    const first = Math.max(this.#slice + 1, current - slices + 1)
    for (let next = first; next <= current; next++) {
      this.#allSum -= this.#all[next % slices]!
      this.#ofKindSum -= this.#ofKind[next % slices]!
      this.#all[next % slices] = 0
      this.#ofKind[next % slices] = 0
    }
    this.#slice = current
  }
}
