// Which pushes may test a push service that refuses our credentials: at growing intervals, and different
// users first, so that one user's broken subscriptions cannot hide a healthy one. Pure: callers give the time.

/** The interval widens by its first value with each so many probes. */
const probesPerStep = 100
const probesAtOnce = 3
/** Waits of a user's next probe double up to this multiple of `openMillis`. */
const userWaitMax = 15
/** Users whose probes were refused; the oldest are dropped beyond this. */
const usersMax = 10_000

export interface Trickle {
  /**
   * Forgets earlier probes. The next one may pass after one interval: at first a 60th of `openMillis`, or,
   * when `isOneByOne`, a 600th; never more than a tenth.
   */
  readonly start: (isOneByOne: boolean, now: number) => void
  /** From now on intervals are the wider ones: a refusal spoke of our credentials. */
  readonly slowDown: () => void
  /** Undefined: send this push as a probe. Else when to come back, at most `openMillis` from now. */
  readonly admit: (user: string, now: number) => number | undefined
  /** Notes that a push to this user was refused. */
  readonly refused: (user: string, now: number) => void
}

export const makeTrickle = (openMillis: number): Trickle => {
  const gapMillisMax = Math.max(1, Math.round(openMillis / 10))
  const users = new Map<string, { readonly waitMillis: number; readonly until: number }>()
  let stepMillis = gapMillisMax
  let probes = 0
  let nextAt = 0
  /** The last time that was given to a push to come back, so that they come one after the other. */
  let slotAt = 0
  /** When a push to a user without a refused probe was last told to wait. */
  let untriedAt = Number.NEGATIVE_INFINITY

  const gap = () => Math.min(Math.round(stepMillis * (1 + probes / probesPerStep)), gapMillisMax)

  /** A clock set back makes no wait longer than its longest. */
  const clamp = (now: number) => {
    nextAt = Math.min(nextAt, now + (1 + probesAtOnce) * gapMillisMax)
    slotAt = Math.min(slotAt, now + openMillis)
    untriedAt = Math.min(untriedAt, now)
  }

  const slot = (now: number) => {
    slotAt = Math.min(Math.max(slotAt, nextAt) + gap(), now + openMillis)
    return slotAt
  }

  return {
    start: (isOneByOne, now) => {
      users.clear()
      stepMillis = Math.max(1, Math.round(openMillis / (isOneByOne ? 600 : 60)))
      probes = 0
      nextAt = now + (1 + probesAtOnce) * gap()
      slotAt = nextAt
      untriedAt = Number.NEGATIVE_INFINITY
    },
    slowDown: () => {
      stepMillis = Math.max(1, Math.round(openMillis / 60))
    },
    admit: (user, now) => {
      clamp(now)
      const tried = users.get(user)
      if (tried !== undefined) {
        const until = Math.min(tried.until, now + openMillis)
        if (until > now) return until
        if (now - untriedAt < 2 * openMillis) return now + openMillis
      }
      // Pushes come back a little early or late, so a few probes may follow each other at once.
      if (now >= nextAt - probesAtOnce * gap()) {
        probes += 1
        nextAt = Math.max(nextAt, now) + gap()
        return undefined
      }
      if (tried === undefined) untriedAt = now
      return slot(now)
    },
    refused: (user, now) => {
      const last = users.get(user)
      // Refused beside another push of the same moment.
      if (last !== undefined && now < last.until) return
      const waitMillis = Math.min(
        last === undefined ? openMillis : 2 * last.waitMillis,
        userWaitMax * openMillis
      )
      users.delete(user)
      if (users.size >= usersMax) users.delete(users.keys().next().value!)
      users.set(user, { waitMillis, until: now + waitMillis })
    }
  }
}
