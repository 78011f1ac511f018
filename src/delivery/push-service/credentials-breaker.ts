// The credentials breaker of one push service and VAPID key: when our credentials are refused, pushes wait,
// and only probes of different users pass until one is accepted. A fault of ours, or of the push service,
// must never cost a subscriber. Pure: callers give the time.
import { type GateState, makeCircuitBreaker } from "./circuit-breaker.ts"
import { makeTrickle } from "./trickle.ts"

/** A 2xx this recent proves that our key is good. A refusal may then be one subscription's own trouble. */
const provenMillis = 10 * 60_000
/**
 * With such proof, this many different users refused, and nothing accepted between them, are the push
 * service's trouble after all. One user may have many broken subscriptions.
 */
const usersInRowMax = 20
/** Subscriptions known to be refused alone; the oldest are dropped beyond this. */
const loneMax = 1_000

/** The push that is about to be sent, or was answered. */
interface Push {
  readonly subscription: string
  readonly user: string
}

/** "mismatch": the subscription was made with another key. "credentials": our token or key was refused. */
export type Refusal = "mismatch" | "credentials"

export interface Breaker {
  /** For how many milliseconds it stays open; 0: it is closed, or any push may be a probe. */
  readonly openMillis: (now: number) => number
  readonly stateAt: (now: number) => GateState
  /** Another worker's is open for so long (0: it was closed by a 2xx). Returns whether ours changes with it. */
  readonly told: (openMillis: number, now: number) => boolean
  /** Undefined: send. Else when to come back. What is sent while the breaker is not closed is a probe. */
  readonly admit: (push: Push, now: number) => number | undefined
  /** Whether the credentials may be tried at all: not open, or half-open. */
  readonly passes: (now: number) => boolean
  /** Whether there was a 2xx within the last ten minutes. */
  readonly proven: (now: number) => boolean
  /** Notes a 2xx; true when it closes the breaker. */
  readonly accepted: (push: Push, now: number) => boolean
  /** Notes a refusal. "lone": this subscription's own trouble. Else when to come back, and whether it opens. */
  readonly refused: (
    push: Push,
    refusal: Refusal,
    now: number
  ) => "lone" | { readonly until: number; readonly opens: boolean }
}

/** `openMillis`: how long it stays open after the last refusal. */
export const makeCredentialsBreaker = (openMillis: number): Breaker => {
  const gate = makeCircuitBreaker()
  const trickle = makeTrickle(openMillis)
  let acceptedAt = Number.NEGATIVE_INFINITY
  const usersInRow = new Set<string>()
  const inRow = new Set<string>()
  /** Refused while our key was proven. Later refusals, without a proof, must not open the breaker. */
  const lone = new Set<string>()

  const passes = (now: number) => gate.stateAt(now) !== "open"
  const proven = (now: number) => {
    // With a clock set back an old proof would be good until the time comes again.
    acceptedAt = Math.min(acceptedAt, now)
    return now - acceptedAt < provenMillis
  }
  const endRow = () => {
    usersInRow.clear()
    inRow.clear()
  }

  const close = (now: number) => {
    acceptedAt = now
    if (inRow.size > 0) endRow()
    return gate.close()
  }

  const isLone = ({ subscription, user }: Push, now: number) => {
    if (lone.has(subscription)) return true
    if (gate.stateAt(now) !== "closed" || !proven(now)) return false
    inRow.add(subscription)
    if (usersInRow.add(user).size >= usersInRowMax) {
      // So many in a row were not alone after all.
      for (const each of inRow) lone.delete(each)
      return false
    }
    if (lone.size >= loneMax) lone.delete(lone.values().next().value!)
    lone.add(subscription)
    return true
  }

  return {
    passes,
    proven,
    admit: ({ user }, now) =>
      gate.stateAt(now) === "closed" ? undefined : trickle.admit(user, now),
    stateAt: gate.stateAt,
    accepted: ({ subscription }, now) => {
      if (lone.size > 0) lone.delete(subscription)
      return close(now)
    },
    refused: (push, refusal, now) => {
      const opens = gate.stateAt(now) === "closed"
      if (isLone(push, now)) {
        if (!opens) trickle.refused(push.user, now)
        return "lone"
      }
      endRow()
      if (opens) trickle.start(refusal === "mismatch", now)
      else if (refusal === "credentials") trickle.slowDown()
      trickle.refused(push.user, now)
      gate.open(openMillis, now)
      return { until: now + openMillis, opens }
    },
    openMillis: (now) => Math.max(0, (gate.openUntil(now) ?? now) - now),
    told: (millis, now) => {
      if (millis === 0) return close(now)
      const state = gate.stateAt(now)
      const wait = Math.min(millis, openMillis)
      if (state === "open" && gate.openUntil(now)! >= now + wait) return false
      endRow()
      if (state === "closed") trickle.start(false, now)
      gate.open(wait, now)
      return state !== "open"
    }
  }
}
