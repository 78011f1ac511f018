// Who a broadcast must reach, may reach and must not reach, from what was acknowledged before it
// was published.
import {
  type Broadcast,
  keyOf,
  type Membership,
  type Model,
  type Subscription,
  type User
} from "./model.ts"

export type Claim = "must" | "may" | "must not"

/** Changes acknowledged before the first attempt to publish have lower sequences in LOG. */
const before = (at: number | undefined, { start, startedAt }: Broadcast): boolean =>
  at !== undefined && at < (start?.[0] ?? startedAt)

/** Changes first asked for after the acknowledgement have higher ones. */
const after = (at: number, { ackedAt, start }: Broadcast): boolean => {
  const since = start?.[1] ?? ackedAt
  return since !== undefined && at > since
}

const claimOfMembership = ({ joined, left }: Membership, broadcast: Broadcast): Claim => {
  if (before(left?.ackedAt, broadcast)) return "must not"
  if (after(joined.startedAt, broadcast)) return "must not"
  return before(joined.ackedAt, broadcast) && left === undefined ? "must" : "may"
}

const ranks: ReadonlyArray<Claim> = ["must not", "may", "must"]
const strongest = (claims: ReadonlyArray<Claim>): Claim =>
  ranks[Math.max(0, ...claims.map((claim) => ranks.indexOf(claim)))]!
const weakest = (claims: ReadonlyArray<Claim>): Claim =>
  ranks[Math.min(...claims.map((claim) => ranks.indexOf(claim)))]!

const claimOfSubscription = (subscription: Subscription, broadcast: Broadcast): Claim => {
  if (broadcast.undelivered?.has(keyOf(subscription)) === false) return "must not"
  const { device, removed, stored } = subscription
  if (before(removed?.ackedAt, broadcast)) return "must not"
  if (after(stored.startedAt, broadcast)) return "must not"
  const { goneAt, unsubscribedAt } = device
  const isWell = removed === undefined && goneAt === undefined && unsubscribedAt === undefined
  return before(stored.ackedAt, broadcast) && isWell ? "must" : "may"
}

const claimOfUser = (user: User, broadcast: Broadcast): Claim => {
  if (broadcast.except.has(user)) return "must not"
  if (broadcast.users.has(user)) return "must"
  const memberships = broadcast.channels.flatMap((channel) => user.memberships.get(channel) ?? [])
  return strongest(memberships.map((membership) => claimOfMembership(membership, broadcast)))
}

/** `must`: everything needed was acknowledged before, and nothing was undone since. */
export const claimOf = (subscription: Subscription, broadcast: Broadcast): Claim =>
  weakest([claimOfUser(subscription.user, broadcast), claimOfSubscription(subscription, broadcast)])

/** Calls `visit` for every subscription that ever was. */
export const eachSubscription = (model: Model, visit: (one: Subscription) => void): void => {
  for (const { subscriptions } of model.users) for (const one of subscriptions) visit(one)
}
