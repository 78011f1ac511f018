// The state of a broadcast, as a sentence with a time, and what became of its pushes.
import { beginOf } from "../api/broadcasts.ts"
import type { Broadcast, Outcome, WholeBroadcast } from "../api/shapes.ts"
import { duration, percent, t, tIf, time } from "./language.ts"
import { person } from "./people.ts"

/** Why a push has its outcome. Composed ones name the last attempt: `expired:timeout`. */
export const reason = (word: string): string => {
  const [first = "", last] = word.split(":")
  if (last === undefined) return tIf(`reason-${first}`) ?? word
  return t("reasonAfter", { first: tIf(`reason-${first}`) ?? first, last: reason(last) })
}

export const pushService = (name: string): string => tIf(`push-service-${name}`) ?? name

export const outcomeWord = (outcome: Outcome | "waiting"): string => t(`outcome-${outcome}`)

/** Pushes that no push service took, and never will. */
export const neverOf = ({ accepted, delivered, retrying, waiting }: WholeBroadcast): number =>
  accepted - delivered - retrying - waiting

/** From this share on, the few that are tried again are all that keep it open. */
const nearlyShare = 0.9

const doneShare = ({ accepted, done_share, retrying }: Broadcast): number =>
  done_share ?? (accepted - retrying) / Math.max(accepted, 1)

/** Whether there is no more to stop or to pause than tries of a few. */
export const isNearlyDone = (broadcast: Broadcast): boolean =>
  broadcast.state === "running" &&
  broadcast.waiting === 0 &&
  broadcast.retrying > 0 &&
  doneShare(broadcast) >= nearlyShare

/** Said of a broadcast that is nearly done: its rest is tried again. */
const lastOnes = (broadcast: WholeBroadcast): string | undefined => {
  const { accepted, delivered, retries = [], retrying, waiting } = broadcast
  if (retrying === 0 || waiting > 0) return undefined
  const share = percent(doneShare(broadcast))
  const [first] = retries
  const until = Math.max(0, ...retries.map((each) => each.until)) || broadcast.expires_at
  const values = { share, count: retrying, until: time(until), delivered, accepted }
  return first === undefined
    ? t("sayNearly", values)
    : t("sayNearlyWhy", { ...values, why: reason(first.reason) })
}

const saysPaused = (broadcast: WholeBroadcast): string => {
  const { because, changed_by = "", expires_at, retrying, waiting } = broadcast
  const rest = t("sayPausedRest", { count: waiting + retrying, until: time(expires_at) })
  if (changed_by === "pause_when" && because) {
    const { attempted, failed } = because
    return `${t("sayPausedItself", { failed, attempted })} ${rest}`
  }
  return `${t("sayPausedBy", { person: person(changed_by) })} ${rest}`
}

const saysRunning = (broadcast: WholeBroadcast): string => {
  const { accepted, delivered, people, retrying, waiting } = broadcast
  if (people === undefined) return t("sayPlanning")
  const nearly = lastOnes(broadcast)
  if (nearly !== undefined) return nearly
  const values = { delivered, accepted, count: waiting }
  return retrying > 0
    ? t("sayRunningAgain", { ...values, again: retrying })
    : t("sayRunning", values)
}

const saysEnd = (broadcast: WholeBroadcast): string => {
  const { accepted, changed_by = "", delivered, finished, people, rejected, state } = broadcast
  if (state === "rejected") return t("sayRejected", { reason: rejected ?? "" })
  if (state === "cancelled") {
    if (finished && !people) return t("sayCalledOff", { person: person(changed_by) })
    const count = neverOf(broadcast)
    const said = t("sayStopped", { person: person(changed_by), delivered, count })
    const open = broadcast.waiting + broadcast.retrying
    return finished || open === 0 ? said : `${said} ${t("sayStopping", { count: open })}`
  }
  if (accepted === 0) return t("sayNobody")
  return t("sayDone", { delivered, accepted })
}

export const says = (broadcast: WholeBroadcast, now: number): string => {
  const { state } = broadcast
  if (state === "scheduled") {
    const at = beginOf(broadcast)
    return t("sayScheduled", { wait: duration(at - now), time: time(at) })
  }
  if (state === "paused") return saysPaused(broadcast)
  return state === "running" ? saysRunning(broadcast) : saysEnd(broadcast)
}
