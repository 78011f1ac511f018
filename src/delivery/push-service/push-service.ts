// What this process has learned about one push service (with the one VAPID key it signs with), and what that makes of the next push and of an
// answer. Plain values; who sends decides what to log, and who keeps the lanes tells other workers.
import { throttledBaseMillis } from "#domain/job.ts"
import type { AttemptResult, Deferred, Refusal, ResponseResult } from "../push/attempt-result.ts"
import { makeConnectivityBreaker } from "./connectivity-breaker.ts"
import { makeCredentialsBreaker } from "./credentials-breaker.ts"
import type { LaneNews } from "./gossip.ts"
import { type Change, makeGone } from "./mass-gone.ts"
import { awayMillis, makeQueue } from "./queue.ts"
import { makeWindow, type Narrowed } from "./window.ts"

/** Something an operator should see: once, when it begins or ends. Names the host and the reason, never an endpoint. */
export interface Notice {
  readonly level: "info" | "warn" | "error"
  readonly text: string
}

export interface PushServiceOptions {
  readonly pushesUnderWayMax: number
  readonly breakerOpenMillis: number
  readonly retryBaseMillis: number
  /** Whether this process has time for more pushes. */
  readonly hasTime: () => boolean
  /** See gone.ts. Default: nothing is known. */
  readonly knownFrom?: () => number
}

/** The push that is about to be sent, or was answered. */
export interface Push {
  /** Tells the subscriptions of this push service apart. */
  readonly subscription: string
  readonly user: string
  /** Sequences in LOG: of the command that stored the subscription, and of the broadcast. */
  readonly generation: number
  readonly broadcast: number
  /** Whether the last answer to this push was "gone" and not believed. */
  readonly saidGone: boolean
  /** When its broadcast was accepted. */
  readonly acceptedAt: number
  /** When its subscription was stored. */
  readonly storedAt: number
  readonly sentAt: number
}

/** How long a push waits that was answered "gone" and not believed: a quarter of its broadcast's age within these. */
const goneMillisMin = 60_000
const goneMillisMax = 15 * 60_000

/** All processes have the same keys after this. */
const rotationMillis = 24 * 60 * 60_000

/** Why a push waits that was answered "gone" while that is not believed; retry jobs carry it too. */
export const massGone = "mass-gone"

const noNotices: ReadonlyArray<Notice> = []

/** After this long a refused push sees whether the push service accepts others. */
const lookAgainMillis = 1_000

const seconds = (millis: number) => `${Math.round(millis / 1000)} s`

const isRefusal = (judged: AttemptResult): judged is Refusal =>
  judged.kind === "credentials" || judged.kind === "mismatch"

/** `key` names the VAPID key. */
export const makePushService = (
  origin: string,
  key: string,
  {
    breakerOpenMillis,
    hasTime,
    knownFrom = () => Number.POSITIVE_INFINITY,
    pushesUnderWayMax,
    retryBaseMillis
  }: PushServiceOptions
) => {
  const { hostname: host } = new URL(origin)
  const goneness = makeGone(knownFrom)
  const breaker = makeCredentialsBreaker(breakerOpenMillis)
  const pacing = makeWindow(pushesUnderWayMax, throttledBaseMillis(retryBaseMillis))
  const reach = makeConnectivityBreaker(retryBaseMillis, breakerOpenMillis)
  const line = makeQueue(
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

  const taken = (push: Push, now: number) => {
    if (breaker.accepted(push, now)) {
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

  const refused = (classified: Refusal, push: Push, status: number, now: number): AttemptResult => {
    // A subscription made with another key says nothing of ours, and one user may have many.
    if (classified.kind === "mismatch" && breaker.proven(now)) return classified
    const refusal = breaker.refused(push, classified.kind, now)
    if (refusal === "lone") return classified
    if (refusal.opens) {
      isOpenHere = true
      notice(
        "error",
        `refuses our credentials (${classified.reason}, status ${status}): pushes to it wait`
      )
    }
    // Another push may be accepted within the second: then this one was refused alone. If none is,
    // the breaker holds this push without sending it.
    const until = Math.min(refusal.until, now + lookAgainMillis)
    return { kind: "deferred", reason: classified.reason, until }
  }

  const weighed = (change: Change) => {
    if (change === "holds")
      notice(
        "warn",
        "says of most subscriptions that they are gone: none is removed until that changes"
      )
    if (change === "trusts")
      notice("info", "says of most subscriptions that they live: the gone ones are removed again")
  }

  const waitOf = ({ acceptedAt }: Push, now: number): Deferred => ({
    kind: "deferred",
    reason: massGone,
    until: now + Math.min(Math.max(goneMillisMin, (now - acceptedAt) / 4), goneMillisMax)
  })

  const guarded = (
    answered: ResponseResult,
    classified: ResponseResult,
    push: Push,
    now: number
  ): AttemptResult => {
    if (classified.kind !== "gone") {
      const isAccepted = classified.kind === "accepted"
      weighed(isAccepted ? goneness.accepted(push, push.saidGone, now) : goneness.other(now))
      return classified
    }
    const { believed, change } = goneness.gone(push, answered.kind === "gone", now)
    weighed(change)
    return believed ? classified : waitOf(push, now)
  }

  /**
   * Our key was accepted a moment ago, so it is the subscription that was made with another. Not one of today: while keys are rotated,
   * process by process, it may have been made with a key that this one does not have yet.
   */
  const meant = (classified: ResponseResult, storedAt: number, now: number): ResponseResult =>
    classified.kind === "mismatch" && breaker.proven(now) && now - storedAt >= rotationMillis
      ? { kind: "gone", reason: classified.reason }
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
      holding: goneness.holding(),
      window: pacing.window
    }),

    /** Why a push must not even stand in line; undefined: let it. */
    turnedAway: (acceptedAt: number, now: number): Deferred | undefined =>
      line.isFull()
        ? { kind: "deferred", reason: "lane-slow", until: now + awayMillis(now - acceptedAt) }
        : undefined,

    /** Why a push must not be sent now; undefined: send it. */
    heldAt: (push: Push, now: number): Deferred | undefined => {
      const closedUntil = pacing.closedUntil(now)
      // Before the others, which would take a push that is not sent for their probe.
      if (closedUntil !== undefined)
        return { kind: "deferred", reason: "lane-throttled", until: closedUntil }
      const unreachableUntil = reach.admit(now)
      if (unreachableUntil !== undefined)
        return { kind: "deferred", reason: "unreachable", until: unreachableUntil }
      if (push.saidGone && !goneness.mayProbe(push, now)) return waitOf(push, now)
      const until = breaker.admit(push, now)
      if (until !== undefined) return { kind: "deferred", reason: "breaker-open", until }
      if (push.saidGone) goneness.probes(now)
      return undefined
    },

    /**
     * Whether an answer may be due to a token gone bad: worth one try with a new one. A mismatch is not: every
     * token names the same key.
     */
    doubtsToken: ({ kind }: ResponseResult, now: number): boolean =>
      kind === "credentials" && breaker.passes(now),

    /** Notes that no answer came. The attempt counts; what waits then is not sent. */
    failed: (
      { kind, reason }: ResponseResult,
      { sentAt, subscription }: Push,
      now: number
    ): ReadonlyArray<Notice> => {
      // A name that does not exist, or leads where nothing may be sent, may be these subscriptions' own: strikes will tell.
      if (kind !== "retry" || reason === "unknown-host" || reason === "address-not-allowed")
        return noNotices
      const change = reach.failed(subscription, sentAt, now)
      if (change === undefined) return noNotices
      const then = change === "waits" ? "pushes to it wait" : "its pushes are tried again"
      notice(reason === "tls" ? "error" : "warn", `cannot be reached (${reason}): ${then}`)
      return said()
    },

    /** What a final answer means, given those before it. */
    judge: (
      answered: ResponseResult,
      push: Push,
      status: number,
      now: number
    ): { readonly judged: AttemptResult; readonly notices: ReadonlyArray<Notice> } => {
      const classified = meant(answered, push.storedAt, now)
      if (reach.answered(now)) notice("info", "is reached again")
      if (classified.kind === "accepted") taken(push, now)
      if (classified.kind === "retry" && classified.reason === "throttled") {
        const change = pacing.throttled(
          push.subscription,
          push.sentAt,
          now,
          classified.retryAfterMillis
        )
        if (change !== undefined) narrowed(change, now)
      }
      const believed = guarded(answered, classified, push, now)
      const judged = isRefusal(believed) ? refused(believed, push, status, now) : believed
      return { judged, notices: notices.length === 0 ? noNotices : said() }
    },

    /** Whether other workers had better hear of this lane at once. */
    isUrgent: (): boolean =>
      fresh.openMillis !== undefined || fresh.window !== undefined || goneness.isUrgent(),

    /** What other workers should know, and have not heard or may have missed; undefined: nothing. */
    news: (worker: string, now: number): LaneNews | undefined => {
      const { answers, gone } = goneness.untold()
      const openMillis =
        fresh.openMillis ?? (isOpenHere ? breaker.openMillis(now) || undefined : undefined)
      const closedMillis = Math.max(0, closedHereUntil - now)
      const { window } = fresh
      const holds = goneness.holding()
      fresh = {}
      const optional = {
        ...(openMillis === undefined ? {} : { openMillis }),
        ...(window === undefined ? {} : { window }),
        ...(closedMillis === 0 ? {} : { closedMillis })
      }
      if (answers === 0 && !holds && Object.keys(optional).length === 0) return undefined
      const reached = goneness.newest()
      return {
        ...{ worker, origin, key, answers, gone, holds, ...optional },
        ...(reached === 0 ? {} : { reached })
      }
    },

    /** What another worker tells; what an operator should know of that. */
    learn: (
      { answers, closedMillis = 0, gone, holds, openMillis, reached = 0, window }: LaneNews,
      now: number
    ): ReadonlyArray<Notice> => {
      weighed(goneness.told({ answers, gone }, holds, reached, now))
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

export type PushService = ReturnType<typeof makePushService>
