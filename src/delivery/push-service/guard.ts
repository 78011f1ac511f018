// The mass-gone guard of one push service: when most of its answers say "gone", it is the service (or what stands in front of it: a captive
// proxy, a wrong DNS entry) that is in trouble, not the subscribers. Pure: it knows the time only from its callers.

const sliceMillis = 30_000
/** The window: ten slices, five minutes. Older answers say nothing about the service as it is now. */
const slices = 10
/** Fewer answers prove nothing; also about the most that a process removes before the guard can know. */
const answersMin = 50
/** Trust returns on fewer, as removing waits for it; but not on none, or a quiet hour would make the guard forget. */
const answersToTrustMin = 10
const goneShareMax = 0.5

/** Told others this often at the latest: each worker removes at most so many more before it hears of the others. */
const toldGonesMax = 10

/** What one worker counted. */
export interface Counted {
  readonly answers: number
  readonly gone: number
}

export interface Guard {
  /** While true, "gone" is not to be believed. */
  readonly holding: boolean
  /** Counts an answer; says so when it is the one that changes `holding`. */
  readonly note: (gone: boolean, now: number) => "holds" | "trusts" | undefined
  /** What another worker counted, and whether it holds: that is believed until there are answers enough to know better. */
  readonly told: (counted: Counted, holds: boolean, now: number) => "holds" | "trusts" | undefined
  /** What was counted here since this was asked last. */
  readonly untold: () => Counted
  /** Whether others had better be told at once. */
  readonly isUrgent: () => boolean
}

export const makeGuard = (): Guard => {
  const answers = new Array<number>(slices).fill(0)
  const gones = new Array<number>(slices).fill(0)
  let slice = 0
  let answersSum = 0
  let gonesSum = 0
  let holding = false
  let untold = { answers: 0, gone: 0 }

  const advance = (now: number) => {
    const current = Math.floor(now / sliceMillis)
    // A clock set back goes on counting where it was.
    for (let next = Math.max(slice + 1, current - slices + 1); next <= current; next++) {
      answersSum -= answers[next % slices]!
      gonesSum -= gones[next % slices]!
      answers[next % slices] = 0
      gones[next % slices] = 0
    }
    slice = Math.max(slice, current)
  }

  const count = (more: number, gone: number, now: number) => {
    advance(now)
    answers[slice % slices]! += more
    answersSum += more
    gones[slice % slices]! += gone
    gonesSum += gone
  }

  const weigh = () => {
    const suspicious = gonesSum > answersSum * goneShareMax
    if (suspicious === holding || answersSum < (holding ? answersToTrustMin : answersMin))
      return undefined
    holding = suspicious
    return holding ? "holds" : "trusts"
  }

  return {
    get holding() {
      return holding
    },
    note: (isGone, now) => {
      const gone = isGone ? 1 : 0
      untold = { answers: untold.answers + 1, gone: untold.gone + gone }
      count(1, gone, now)
      return weigh()
    },
    told: (counted, holds, now) => {
      count(counted.answers, counted.gone, now)
      if (!holds || holding || answersSum >= answersToTrustMin) return weigh()
      holding = true
      return "holds"
    },
    untold: () => {
      const told = untold
      untold = { answers: 0, gone: 0 }
      return told
    },
    isUrgent: () => untold.gone >= toldGonesMax
  }
}
