// What this process has learned about one push service (with the one VAPID key it signs with), and what that makes of the next push and of an
// answer. Plain values; who sends decides what to log, and who keeps the lanes tells other workers.
import { throttledBaseMillis } from "#domain/job.ts"
import type { Classified } from "../push/classify.ts"
import { makeBreaker } from "./breaker.ts"
import { makeGuard } from "./guard.ts"
import { awayMillis, makeLine } from "./line.ts"
import type { LaneNews } from "./news.ts"
import { makePacing, type Narrowed } from "./pacing.ts"
import { makeReach } from "./reach.ts"

/** Not for this push to pay for: it waits until `until` (milliseconds since the epoch), and the attempt does not count. */
export interface Held {
  readonly class: "held"
  readonly reason: string
  readonly until: number
}

export type Judged = Classified | Held

/** Something an operator should see: once, when it begins or ends. Names the host and the reason, never an endpoint. */
export interface Notice {
  readonly level: "info" | "warn" | "error"
  readonly text: string
}

export interface LaneOptions {
  readonly pushesUnderWayMax: number
  readonly breakerOpenMillis: number
  readonly retryBaseMillis: number
  /** Whether this process has time for more pushes. */
  readonly hasTime: () => boolean
}

/** Of the push that was answered. */
export interface Push {
  /** Tells the subscriptions of this push service apart. */
  readonly subscription: string
  /** When its broadcast was accepted. */
  readonly acceptedAt: number
  /** When its subscription was stored. */
  readonly storedAt: number
  readonly sentAt: number
}

/** A first look after a minute; then at growing intervals, so that a service that stays so is not asked every minute for a day. */
const goneMillisMin = 60_000
const goneMillisMax = 15 * 60_000

/** All processes have the same keys after this. */
const rotationMillis = 24 * 60 * 60_000

const noNotices: ReadonlyArray<Notice> = []

const seconds = (millis: number) => `${Math.round(millis / 1000)} s`

/** `key` names the VAPID key. */
export const makeLane = (
  origin: string,
  key: string,
  { breakerOpenMillis, hasTime, pushesUnderWayMax, retryBaseMillis }: LaneOptions
) => {
  const { hostname: host } = new URL(origin)
  const guard = makeGuard()
  const breaker = makeBreaker(breakerOpenMillis)
  const pacing = makePacing(pushesUnderWayMax, throttledBaseMillis(retryBaseMillis))
  const reach = makeReach(retryBaseMillis, breakerOpenMillis)
  const line = makeLine(
    pushesUnderWayMax,
    () => pacing.window,
    () => pacing.isSlowed
  )
  const notices: Array<Notice> = []
  /** What this process saw itself, and the others do not know yet. What they said is not repeated: they would hear it from us for ever. */
  let fresh: { openMillis?: number; window?: number } = {}
  let isOpenHere = false
  let closedHereUntil = 0

  const notice = (level: Notice["level"], text: string) => {
    notices.push({ level, text: `${host} ${text}` })
  }
  const said = (): ReadonlyArray<Notice> => notices.splice(0)

  const taken = ({ subscription }: Push, now: number) => {
    if (breaker.accepted(subscription, now)) {
      notice("info", "takes our credentials again")
      isOpenHere = false
      fresh.openMillis = 0
    }
    if (pacing.accepted(now, line.isWaiting() && hasTime()))
      notice("info", "is sent to at full speed again")
  }

  const narrowed = ({ closedMillis, window }: Narrowed, now: number) => {
    fresh.window = window
    closedHereUntil = now + closedMillis
    const wait = closedMillis === 0 ? "" : `, and none for ${seconds(closedMillis)}`
    notice("warn", `throttles us: ${window} pushes at a time from now on${wait}`)
  }

  const refused = (
    classified: Classified,
    { subscription }: Push,
    status: number,
    now: number
  ): Judged => {
    // A subscription made with another key says nothing of ours, and one user may have many.
    if (classified.class === "mismatch" && breaker.proven(now)) return classified
    const refusal = breaker.refused(subscription, now)
    if (refusal === "lone") return classified
    if (refusal.opens) {
      isOpenHere = true
      notice(
        "error",
        `refuses our credentials (${classified.reason}, status ${status}): pushes to it wait`
      )
    }
    return { class: "held", reason: classified.reason, until: refusal.until }
  }

  const weighed = (change: "holds" | "trusts" | undefined) => {
    if (change === "holds")
      notice(
        "warn",
        "says of most subscriptions that they are gone: none is removed until that changes"
      )
    if (change === "trusts")
      notice("info", "says of most subscriptions that they live: the gone ones are removed again")
  }

  const guarded = (classified: Classified, { acceptedAt }: Push, now: number): Judged => {
    const gone = classified.class === "gone"
    weighed(guard.note(gone, now))
    if (!gone || !guard.holding) return classified
    return {
      class: "held",
      reason: "mass-gone",
      until: now + Math.min(Math.max(goneMillisMin, (now - acceptedAt) / 4), goneMillisMax)
    }
  }

  /**
   * Our key was accepted a moment ago, so it is the subscription that was made with another. Not one of today: while keys are rotated,
   * process by process, it may have been made with a key that this one does not have yet.
   */
  const meant = (classified: Classified, storedAt: number, now: number): Classified =>
    classified.class === "mismatch" && breaker.proven(now) && now - storedAt >= rotationMillis
      ? { class: "gone", reason: classified.reason }
      : classified

  return {
    origin,
    key,
    host,
    inTurn: line.inTurn,

    /** As an operator sees it. */
    stateAt: (now: number) => ({
      breaker: breaker.stateAt(now),
      reach: reach.stateAt(now),
      holding: guard.holding,
      window: pacing.window
    }),

    /** Why a push must not even stand in line; undefined: let it. */
    turnedAway: (acceptedAt: number, now: number): Held | undefined =>
      line.isFull()
        ? { class: "held", reason: "lane-slow", until: now + awayMillis(now - acceptedAt) }
        : undefined,

    /** Why a push must not be sent now; undefined: send it. */
    heldAt: (now: number): Held | undefined => {
      const closedUntil = pacing.closedUntil(now)
      // Before the others, which would take a push that is not sent for their probe.
      if (closedUntil !== undefined)
        return { class: "held", reason: "lane-throttled", until: closedUntil }
      const unreachableUntil = reach.admit(now)
      if (unreachableUntil !== undefined)
        return { class: "held", reason: "unreachable", until: unreachableUntil }
      const until = breaker.admit(now)
      return until === undefined ? undefined : { class: "held", reason: "breaker-open", until }
    },

    /** Whether an answer may be due to a token gone bad: worth one try with a new one. */
    doubtsToken: (classified: Classified, storedAt: number, now: number): boolean => {
      const { class: outcome } = meant(classified, storedAt, now)
      return (outcome === "credentials" || outcome === "mismatch") && breaker.passes(now)
    },

    /** Notes that no answer came. The attempt counts; what waits then is not sent. */
    failed: (
      { class: outcome, reason }: Classified,
      { sentAt, subscription }: Push,
      now: number
    ): ReadonlyArray<Notice> => {
      // A name that does not exist, or leads where nothing may be sent, may be these subscriptions' own: strikes will tell.
      if (outcome !== "retry" || reason === "unknown-host" || reason === "address-not-allowed")
        return noNotices
      const change = reach.failed(subscription, sentAt, now)
      if (change === undefined) return noNotices
      const then = change === "waits" ? "pushes to it wait" : "its pushes are tried again"
      notice(reason === "tls" ? "error" : "warn", `cannot be reached (${reason}): ${then}`)
      return said()
    },

    /** What a final answer means, given those before it. */
    judge: (
      answered: Classified,
      push: Push,
      status: number,
      now: number
    ): { readonly judged: Judged; readonly notices: ReadonlyArray<Notice> } => {
      const classified = meant(answered, push.storedAt, now)
      if (reach.answered(now)) notice("info", "is reached again")
      if (classified.class === "accepted") taken(push, now)
      if (classified.reason === "throttled") {
        const change = pacing.throttled(
          push.subscription,
          push.sentAt,
          now,
          classified.retryAfterMillis
        )
        if (change !== undefined) narrowed(change, now)
      }
      const believed = guarded(classified, push, now)
      const doubted = believed.class === "credentials" || believed.class === "mismatch"
      const judged = doubted ? refused(believed, push, status, now) : believed
      return { judged, notices: notices.length === 0 ? noNotices : said() }
    },

    /** Whether other workers had better hear of this lane at once. */
    isUrgent: (): boolean =>
      fresh.openMillis !== undefined || fresh.window !== undefined || guard.isUrgent(),

    /** What other workers should know, and have not heard or may have missed; undefined: nothing. */
    news: (worker: string, now: number): LaneNews | undefined => {
      const { answers, gone } = guard.untold()
      const openMillis =
        fresh.openMillis ?? (isOpenHere ? breaker.openMillis(now) || undefined : undefined)
      const closedMillis = Math.max(0, closedHereUntil - now)
      const { window } = fresh
      fresh = {}
      const optional = {
        ...(openMillis === undefined ? {} : { openMillis }),
        ...(window === undefined ? {} : { window }),
        ...(closedMillis === 0 ? {} : { closedMillis })
      }
      if (answers === 0 && !guard.holding && Object.keys(optional).length === 0) return undefined
      return { worker, origin, key, answers, gone, holds: guard.holding, ...optional }
    },

    /** What another worker tells; what an operator should know of that. */
    learn: (
      { answers, closedMillis = 0, gone, holds, openMillis, window }: LaneNews,
      now: number
    ): ReadonlyArray<Notice> => {
      weighed(guard.told({ answers, gone }, holds, now))
      if (openMillis !== undefined && breaker.told(openMillis, now)) {
        isOpenHere = false
        if (openMillis === 0) notice("info", "takes our credentials again, another worker says")
        else notice("warn", "refuses our credentials, another worker says: pushes to it wait")
      }
      if (window !== undefined || closedMillis > 0)
        pacing.told({ ...(window === undefined ? {} : { window }), closedMillis }, now)
      if (window !== undefined)
        notice("warn", `throttles another worker: at most ${window} pushes at a time from now on`)
      return said()
    }
  }
}

export type Lane = ReturnType<typeof makeLane>
