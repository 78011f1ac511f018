// What this process has learned about one push service (with the one VAPID key it signs with), and what that makes of the next push and of an
// answer. Plain values; who sends decides what to log.
import { Semaphore } from "effect"
import { throttledBaseMillis } from "#domain/job.ts"
import type { Classified } from "../push/classify.ts"
import { makeBreaker } from "./breaker.ts"
import { makeGuard } from "./guard.ts"
import { makePacing } from "./pacing.ts"

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
  readonly connectionsPerOrigin: number
  readonly breakerOpenMillis: number
  readonly retryBaseMillis: number
}

/** Of the push that was answered. */
export interface Push {
  /** Tells the subscriptions of this push service apart. */
  readonly subscription: string
  /** When its broadcast was accepted. */
  readonly acceptedAt: number
}

/** A first look after a minute; then at growing intervals, so that a service that stays so is not asked every minute for a day. */
const goneMillisMin = 60_000
const goneMillisMax = 15 * 60_000

export const makeLane = (origin: string, { breakerOpenMillis, connectionsPerOrigin, retryBaseMillis }: LaneOptions) => {
  const { hostname: host } = new URL(origin)
  const guard = makeGuard()
  const breaker = makeBreaker(breakerOpenMillis)
  const pacing = makePacing(throttledBaseMillis(retryBaseMillis))
  const noNotices: ReadonlyArray<Notice> = []
  let notices: Array<Notice> = []
  const notice = (level: Notice["level"], text: string) => {
    notices.push({ level, text: `${host} ${text}` })
  }

  const refused = (classified: Classified, { subscription }: Push, status: number, now: number): Judged => {
    const refusal = breaker.refused(subscription, now)
    if (refusal === "lone") return classified
    if (refusal.opens) notice("error", `refuses our credentials (${classified.reason}, status ${status}): pushes to it wait`)
    return { class: "held", reason: classified.reason, until: refusal.until }
  }

  const guarded = (classified: Classified, { acceptedAt }: Push, now: number): Judged => {
    const gone = classified.class === "gone"
    const change = guard.note(gone, now)
    if (change === "holds") notice("warn", "says of most subscriptions that they are gone: none is removed until that changes")
    if (change === "trusts") notice("info", "says of most subscriptions that they live: the gone ones are removed again")
    if (!gone || !guard.holding) return classified
    return { class: "held", reason: "mass-gone", until: now + Math.min(Math.max(goneMillisMin, (now - acceptedAt) / 4), goneMillisMax) }
  }

  /** Our key was accepted a moment ago, so it is the subscription that was made with another. */
  const meant = (classified: Classified, now: number): Classified =>
    classified.class === "mismatch" && breaker.proven(now) ? { class: "gone", reason: classified.reason } : classified

  return {
    origin,
    host,
    slots: Semaphore.makeUnsafe(connectionsPerOrigin),

    /** Why a push must not be sent now; undefined: send it. */
    heldAt: (now: number): Held | undefined => {
      const closedUntil = pacing.closedUntil(now)
      // Before the breaker, which would take a push that is not sent for its probe.
      if (closedUntil !== undefined) return { class: "held", reason: "lane-throttled", until: closedUntil }
      const until = breaker.admit(now)
      return until === undefined ? undefined : { class: "held", reason: "breaker-open", until }
    },

    /** Whether an answer may be due to a token gone bad: worth one try with a new one. */
    doubtsToken: (classified: Classified, now: number): boolean => {
      const { class: outcome } = meant(classified, now)
      return (outcome === "credentials" || outcome === "mismatch") && breaker.passes(now)
    },

    /** What a final answer means, given those before it. */
    judge: (
      answered: Classified,
      push: Push,
      status: number,
      now: number
    ): { readonly judged: Judged; readonly notices: typeof noNotices } => {
      const classified = meant(answered, now)
      if (classified.class === "accepted" && breaker.accepted(now)) notice("info", "takes our credentials again")
      if (classified.reason === "throttled" && pacing.throttled(push.subscription, now, classified.retryAfterMillis)) {
        notice("warn", `throttles us: pushes to it wait ${Math.round((pacing.closedUntil(now)! - now) / 1000)} s`)
      }
      const believed = guarded(classified, push, now)
      const doubted = believed.class === "credentials" || believed.class === "mismatch"
      const judged = doubted ? refused(believed, push, status, now) : believed
      if (notices.length === 0) return { judged, notices: noNotices }
      const said = notices
      notices = []
      return { judged, notices: said }
    }
  }
}

export type Lane = ReturnType<typeof makeLane>
