// Nobody is missed, nobody who had left gets anything, and what is recorded of each push is what
// its push service saw.
import { type Claim, claimOf, eachSubscription } from "../model/audience.ts"
import {
  type Broadcast,
  type Device,
  keyOf,
  type Receipts,
  receiptsOf,
  type Subscription
} from "../model/model.ts"
import type { RecordedBroadcast, RecordedPush } from "../model/recorded.ts"
import { broadcastsOf, type Check, few, type Look } from "./check.ts"

const shown = (of: Subscription) => `${of.user.name} ${of.id.slice(0, 8)}`

/** Why this recorded end contradicts what the push service saw; undefined: it does not. */
const contradiction = (
  of: Subscription,
  { last }: RecordedPush,
  receipts: Receipts | undefined,
  { claim, isCancelled }: { readonly claim: Claim; readonly isCancelled: boolean }
): string | undefined => {
  const { accepted = 0, gone = 0, halved = 0, refused = 0, unanswered = 0 } = receipts ?? {}
  switch (last.fate) {
    case "delivered":
      return accepted + halved > 0 ? undefined : "was not accepted by its push service"
    case "gone": {
      const isLeft = last.reason === "left" || last.reason === "moved"
      if (!isLeft) return gone > 0 ? undefined : "its push service did not call it gone"
      return hasLeft(of) && claim !== "must" ? undefined : "its user did not leave"
    }
    case "dead":
      return refused + unanswered + halved + gone > 0
        ? undefined
        : "its push service refused nothing"
    case "cancelled":
      return isCancelled ? undefined : "nobody cancelled the broadcast"
    case "expired":
      return "its life is two hours"
    default:
      return "is no end"
  }
}

/** The push service does not know which of several owners a push was for. */
const isShared = ({ owners }: Device): boolean => owners.length > 1

const hasLeft = ({ device, removed, user }: Subscription): boolean =>
  removed !== undefined ||
  isShared(device) ||
  device.goneAt !== undefined ||
  [...user.memberships.values()].some((all) => all.some(({ left }) => left !== undefined))

interface Pair {
  readonly look: Look
  readonly broadcast: Broadcast
  readonly recorded: RecordedBroadcast | undefined
  readonly of: Subscription
}

const judge = ({ broadcast, look, of, recorded }: Pair): string | undefined => {
  const receipts = receiptsOf(look.model, broadcast.marker, of.device)
  const push = recorded?.pushes.get(keyOf(of))
  const claim = claimOf(of, broadcast)
  const { accepted = 0, halved = 0, unanswered = 0 } = receipts ?? {}
  const taken = accepted + halved + unanswered
  const name = `broadcast ${recorded?.id ?? broadcast.marker} to ${shown(of)}`
  if (claim === "must not") {
    // A cancelled push counts, too: its subscription was in the audience.
    const isSent = push !== undefined || (receipts !== undefined && !isShared(of.device))
    return isSent ? `${name}: was not there, or not registered` : undefined
  }
  if (push === undefined) {
    // Cancelled before it was planned: it goes to nobody.
    const isWanted = broadcast.ackedAt !== undefined && broadcast.cancelled === undefined
    if (claim === "must" && isWanted && taken === 0) {
      look.figures.missed++
      return `${name}: MISSED, neither sent nor recorded`
    }
    // Sent by a process that was killed before it could record the push, and removed since: the
    // process that goes on does not find the subscription any more.
    const mayBeLost = hasLeft(of) && claim !== "must"
    return receipts === undefined || mayBeLost ? undefined : `${name}: was sent, is not recorded`
  }
  look.figures.pushes++
  if (push.last.fate !== "delivered") look.figures.endedOtherwise++
  if (push.firsts !== 1) return `${name}: is recorded ${push.firsts} times by its shard`
  if (push.ends !== 1) return `${name}: has ${push.ends} ends`
  const isCancelled = broadcast.cancelled !== undefined
  const why = contradiction(of, push, receipts, { claim, isCancelled })
  if (why !== undefined && claim === "must" && taken === 0) look.figures.missed++
  return why && `${name}: ${push.last.fate} (${push.last.reason}), but ${why}`
}

export const sent: Check = {
  name: "nobody missed, nobody wrongly sent to, each push recorded once and truly",
  run: async (look) => {
    const violations: Array<string> = []
    const byMarker = new Map(
      [...look.recorded.broadcasts.values()].map((one) => [one.marker, one] as const)
    )
    for (const broadcast of broadcastsOf(look)) {
      if (broadcast.ackedAt !== undefined) look.figures.acknowledged++
      if (broadcast.undelivered !== undefined) look.figures.redriven++
      const recorded = byMarker.get(broadcast.marker)
      eachSubscription(look.model, (of) => {
        const violation = judge({ look, broadcast, recorded, of })
        if (violation !== undefined) violations.push(violation)
      })
    }
    return few(violations)
  }
}

/** A subscription, and all that came from it by renewals. */
const familyOf = (one: Subscription): ReadonlyArray<Subscription> => [
  one,
  ...one.heirs.flatMap(familyOf)
]

/** Checks the browsers that several users had, and all that renewed one subscription. */
export const once: Check = {
  name: "one browser, at most one push of a broadcast",
  run: async (look) => {
    const violations: Array<string> = []
    const mine = new Set(broadcastsOf(look).map(({ marker }) => marker))
    const recorded = [...look.recorded.broadcasts.values()].filter(
      ({ marker }) => marker !== undefined && mine.has(marker)
    )
    eachSubscription(look.model, ({ device, heirs }) => {
      const browser = [...device.owners, ...heirs.flatMap(familyOf)]
      if (browser.length === 1) return
      for (const { id, pushes } of recorded) {
        const ends = browser.map((owner) => pushes.get(keyOf(owner))?.last.fate)
        if (ends.filter((fate) => fate === "delivered").length > 1)
          violations.push(`broadcast ${id}: to ${browser.map(shown).join(" and ")}`)
      }
    })
    return few([...new Set(violations)])
  }
}

/**
 * Pushes that were accepted more than once, less those whose response did not arrive; and pushes
 * that count as cancelled although they were accepted.
 */
export const duplicates: Check = {
  name: "duplicates within the bound",
  run: async (look) => {
    const ids = new Map([...look.recorded.broadcasts.values()].map((one) => [one.marker, one]))
    for (const { marker } of broadcastsOf(look)) {
      for (const [of, { accepted }] of look.model.receipts.get(marker) ?? []) {
        const pushes = of.owners.flatMap((owner) => ids.get(marker)?.pushes.get(keyOf(owner)) ?? [])
        const unanswered = pushes.reduce((sum, push) => sum + push.unanswered, 0)
        const isCancelled = pushes.some(({ last }) => last.fate === "cancelled")
        const recorded = isCancelled ? 0 : 1
        look.figures.duplicates += Math.max(0, accepted - recorded - unanswered)
      }
    }
    const { duplicates: count } = look.figures
    return count <= look.duplicatesMax ? [] : [`${count} duplicates, bound ${look.duplicatesMax}`]
  }
}
