// Which answers "gone" (404, 410) of one push service are believed. Believing a wrong one removes a healthy
// subscription; believing none keeps sending to dead ones. Pure: callers give the time.
//
// - The mass-gone guard (guard.ts) holds when most answers say "gone". So does a long row of them without
//   any 2xx: a captive proxy may begin in the middle of a broadcast.
// - A subscription that no push was ever accepted for loses nothing. While the push service takes other
//   pushes, such a "gone" is believed at once and not counted: made-up subscriptions must not make the guard
//   hold, nor profit from it.
// - While the guard holds, pushes that were answered "gone" wait. One probe at a time is sent, at growing
//   intervals, to find out whether the push service still says so.
import { makeGuard } from "./guard.ts"

/** So many "gone" answers in a row, without a 2xx between them, are not believed any more. */
const inRowMax = 50
/** A 2xx this recent shows that the push service itself answers, and no proxy before it. */
const acceptedMillisMax = 60_000
/** The first probe after a minute, then at twice the interval each time. */
const probeMillisMin = 60_000
const probeMillisMax = 15 * 60_000
/** Subscriptions said to be gone before any push to them was accepted; the oldest are dropped beyond this. */
const neverReachedMax = 1_000

export interface GonePush {
  readonly subscription: string
  /** Sequence in LOG of the command that stored the subscription. */
  readonly generation: number
  /** Sequence in LOG of the broadcast. */
  readonly broadcast: number
}

export type Change = "holds" | "trusts" | undefined

/**
 * `knownFrom` returns the sequence in LOG from which on this process knows of every broadcast that the push
 * service took a push of. Infinity: it knows nothing yet.
 */
export const makeGone = (knownFrom: () => number) => {
  const guard = makeGuard()
  let inRow = 0
  let acceptedAt = Number.NEGATIVE_INFINITY
  /** The two newest broadcasts of which a push was accepted. */
  let newest = 0
  let second = 0
  const neverReached = new Set<string>()
  let probeMillis = probeMillisMin
  let probeAt = 0

  const holding = () => guard.holding || inRow >= inRowMax

  /** Runs `count` and returns what it changed. */
  const changing = (count: () => void): Change => {
    const before = holding()
    count()
    if (before === holding()) return undefined
    probeMillis = probeMillisMin
    probeAt = 0
    return before ? "trusts" : "holds"
  }

  const nameOf = ({ generation, subscription }: GonePush) => `${subscription} ${generation}`

  /** Whether no push to this subscription was ever accepted, as far as this process knows. */
  const isNew = (push: GonePush) => {
    if (neverReached.has(nameOf(push))) return true
    const other = newest === push.broadcast ? second : newest
    return push.generation > knownFrom() && push.generation > other
  }

  const takesOthers = (now: number) => {
    // A clock set back makes no 2xx newer than it is.
    acceptedAt = Math.min(acceptedAt, now)
    return now - acceptedAt < acceptedMillisMax && inRow < inRowMax
  }

  const remember = (push: GonePush) => {
    if (neverReached.size >= neverReachedMax)
      neverReached.delete(neverReached.values().next().value!)
    neverReached.add(nameOf(push))
  }

  const reached = (broadcast: number) => {
    if (broadcast > newest) [newest, second] = [broadcast, newest]
    else if (broadcast < newest) second = Math.max(second, broadcast)
  }

  return {
    /** While true, "gone" is believed of no subscription that may have been reached before. */
    holding,

    /** The newest broadcast of which a push was accepted; 0: none. */
    newest: () => newest,

    /** Notes a 2xx. `saidGone`: an earlier answer to this push was "gone", so that was wrong. */
    accepted: (push: GonePush, saidGone: boolean, now: number): Change =>
      changing(() => {
        inRow = 0
        acceptedAt = now
        reached(push.broadcast)
        if (neverReached.size > 0) neverReached.delete(nameOf(push))
        if (saidGone) {
          probeMillis = probeMillisMin
          probeAt = now
        }
        guard.note(false, now)
      }),

    /** Notes any other answer but "gone". */
    other: (now: number): Change => changing(() => void guard.note(false, now)),

    /** Notes a "gone". `isOfPushService`: 404 or 410, not our conclusion from another answer. */
    gone: (
      push: GonePush,
      isOfPushService: boolean,
      now: number
    ): { readonly believed: boolean; readonly change: Change } => {
      const isOfNew = isOfPushService && isNew(push)
      let believed = false
      const change = changing(() => {
        inRow += 1
        believed = isOfNew && takesOthers(now)
        if (!believed) guard.note(true, now)
      })
      if (believed || !holding()) return { believed: true, change }
      if (isOfNew) remember(push)
      return { believed: false, change }
    },

    /** Whether a push that was answered "gone" may be sent again now. */
    mayProbe: (push: GonePush, now: number): boolean => {
      if (!holding() || (isNew(push) && takesOthers(now))) return true
      // A clock set back makes no wait longer than its longest.
      probeAt = Math.min(probeAt, now + probeMillisMax)
      return now >= probeAt
    },

    /** Notes that such a push is sent. */
    probes: (now: number): void => {
      if (!holding()) return
      probeAt = now + probeMillis
      probeMillis = Math.min(2 * probeMillis, probeMillisMax)
    },

    /** Merges another worker's counts, and the newest broadcast of which a push was accepted. */
    told: (
      counted: { readonly answers: number; readonly gone: number },
      holds: boolean,
      broadcast: number,
      now: number
    ): Change => {
      reached(broadcast)
      return changing(() => void guard.told(counted, holds, now))
    },

    untold: guard.untold,
    isUrgent: guard.isUrgent
  }
}
