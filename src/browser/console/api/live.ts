// A broadcast as it is now: read once, followed while it runs, with samples for its live plot.
import type { WholeBroadcast } from "./shapes.ts"

/** The outcomes of the pushes at a moment. */
export interface Sample {
  readonly at: number
  readonly delivered: number
  readonly retrying: number
  /** dead, expired, gone */
  readonly failed: number
  readonly cancelled: number
  /** Pushes a second since the sample before. */
  readonly rate: number
}

/** Five minutes, at one a second. */
const samplesMax = 300
const apartMillis = 900

const countsOf = ({ cancelled, dead, delivered, expired, gone, retrying }: WholeBroadcast) => ({
  delivered,
  retrying,
  failed: dead + expired + gone,
  cancelled
})

/** Pushes that were attempted: cancelled ones were not, so a Stop shows as no burst. */
const attempted = ({ dead, delivered, expired, gone, retrying }: WholeBroadcast): number =>
  delivered + dead + expired + gone + retrying

interface Last {
  readonly at: number
  readonly attempted: number
}

export class Samples {
  #samples: ReadonlyArray<Sample> = []
  #last: Last | undefined

  get all(): ReadonlyArray<Sample> {
    return this.#samples
  }

  /** Events come up to four times a second: more than the plot shows. */
  add(broadcast: WholeBroadcast, at = Date.now()): void {
    const last = this.#last
    if (last !== undefined && at - last.at < apartMillis && !broadcast.finished) return
    const now = { at, attempted: attempted(broadcast) }
    const seconds = last === undefined ? 0 : Math.max(at - last.at, 1) / 1_000
    const rate =
      last === undefined
        ? 0
        : Math.max(0, (now.attempted - last.attempted) / Math.max(seconds, 0.25))
    this.#last = now
    this.#samples = [
      ...this.#samples.slice(1 - samplesMax),
      { at, rate: Math.round(rate), ...countsOf(broadcast) }
    ]
  }
}
