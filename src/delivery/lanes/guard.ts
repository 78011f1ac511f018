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

export interface Guard {
  /** While true, "gone" is not to be believed. */
  readonly holding: boolean
  /** Counts an answer; says so when it is the one that changes `holding`. */
  readonly note: (gone: boolean, now: number) => "holds" | "trusts" | undefined
}

export const makeGuard = (): Guard => {
  const answers = new Array<number>(slices).fill(0)
  const gones = new Array<number>(slices).fill(0)
  let slice = 0
  let answersSum = 0
  let gonesSum = 0
  let holding = false

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

  return {
    get holding() {
      return holding
    },
    note: (gone, now) => {
      advance(now)
      answers[slice % slices]! += 1
      answersSum += 1
      if (gone) {
        gones[slice % slices]! += 1
        gonesSum += 1
      }
      const suspicious = gonesSum > answersSum * goneShareMax
      if (suspicious === holding || answersSum < (holding ? answersToTrustMin : answersMin)) return undefined
      holding = suspicious
      return holding ? "holds" : "trusts"
    }
  }
}
