// What this process has learned about one push service, and what that makes of an answer: whether "gone" is to be believed. Plain values; who
// sends decides what to log.
import { Semaphore } from "effect"
import { makeGuard } from "./guard.ts"
import type { Classified } from "./push/classify.ts"

/** Not for this push to pay for: it waits until `until` (milliseconds since the epoch), and the attempt does not count. */
export interface Held {
  readonly class: "held"
  readonly reason: "mass-gone"
  readonly until: number
}

export type Judged = Classified | Held

/** Something an operator should see: once, when it begins or ends. */
export interface Notice {
  readonly level: "info" | "warn"
  readonly text: string
}

/** A first look after a minute; then at growing intervals, so that a service that stays so is not asked every minute for a day. */
const heldMillisMin = 60_000
const heldMillisMax = 15 * 60_000

export const makeLane = (origin: string, connections: number) => {
  const { hostname: host } = new URL(origin)
  const guard = makeGuard()

  const massGone = (change: "holds" | "trusts"): Notice =>
    change === "holds"
      ? { level: "warn", text: `${host} says of most subscriptions that they are gone: no more are removed until fewer are` }
      : { level: "info", text: `${host} says of most subscriptions that they live: the gone ones are removed again` }

  /** What an answer means, given those before it. `acceptedAt` is the broadcast's. */
  const judge = (classified: Classified, acceptedAt: number, now: number): { readonly judged: Judged; readonly notice?: Notice } => {
    const gone = classified.class === "gone"
    const change = guard.note(gone, now)
    const until = now + Math.min(Math.max(heldMillisMin, (now - acceptedAt) / 4), heldMillisMax)
    const judged: Judged = gone && guard.holding ? { class: "held", reason: "mass-gone", until } : classified
    return change === undefined ? { judged } : { judged, notice: massGone(change) }
  }

  return { origin, host, slots: Semaphore.makeUnsafe(connections), judge }
}

export type Lane = ReturnType<typeof makeLane>
