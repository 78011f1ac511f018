// What the rig knows for itself: what it asked for, what was acknowledged, and when. Times are
// those of performance.now(). No answer of the service is believed but an acknowledgement.
import type { Browser } from "../push/browser.ts"

/** Something asked for, and acknowledged or not. A change that got no answer is repeated. */
export interface Change {
  readonly startedAt: number
  ackedAt?: number
}

export interface Subscription {
  readonly user: User
  readonly browser: Browser
  readonly endpoint: string
  /** As the service names it in outcomes. Known once it is stored. */
  id?: string
  readonly stored: Change
  removed?: Change
  /** The browser unsubscribed at its push service, which answers 410 from then on. */
  unsubscribedAt?: number
  /** When a push service first said 404 or 410 of it, rightly or wrongly. */
  goneAt?: number
}

/** From a registration to its end. */
export interface Membership {
  readonly joined: Change
  left?: Change
}

export interface User {
  readonly name: string
  readonly subscriptions: Array<Subscription>
  readonly memberships: Map<string, Array<Membership>>
  /** A change of this user is under way: changes of one user are made one after the other. */
  isBusy: boolean
}

export interface Broadcast {
  /** In its payload or its Topic: how pushes are told apart. */
  readonly marker: string
  readonly channel: string
  readonly via: "post" | "post with key" | "nats" | "nats with id"
  readonly cycle: number
  readonly startedAt: number
  ackedAt?: number
  /** Sequence in LOG, as acknowledged. */
  id?: number
}

/** What a push service saw of one broadcast and one subscription. */
export interface Receipts {
  accepted: number
  unanswered: number
  halved: number
  gone: number
  refused: number
}

export interface Model {
  readonly channels: ReadonlyArray<string>
  readonly users: Array<User>
  readonly broadcasts: Map<string, Broadcast>
  /** By marker, then by subscription. */
  readonly receipts: Map<string, Map<Subscription, Receipts>>
  /** What no fault explains, such as a push that cannot be decrypted. */
  readonly wrong: Array<string>
}

export const makeModel = (channels: ReadonlyArray<string>): Model => ({
  channels,
  users: [],
  broadcasts: new Map(),
  receipts: new Map(),
  wrong: []
})

export const receiptsOf = (model: Model, marker: string, of: Subscription): Receipts | undefined =>
  model.receipts.get(marker)?.get(of)

export const takeReceipt = (
  model: Model,
  marker: string,
  of: Subscription,
  kind: keyof Receipts
): void => {
  if (!model.broadcasts.has(marker)) return void model.wrong.push(`unknown broadcast ${marker}`)
  const all = model.receipts.get(marker) ?? new Map<Subscription, Receipts>()
  model.receipts.set(marker, all)
  const receipts = all.get(of) ?? { accepted: 0, unanswered: 0, halved: 0, gone: 0, refused: 0 }
  all.set(of, receipts)
  receipts[kind]++
  if (kind === "gone") of.goneAt ??= performance.now()
}

/** Whether the user is registered now, as far as was acknowledged. */
export const isIn = (user: User, channel: string): boolean => {
  const last = user.memberships.get(channel)?.at(-1)
  return last?.joined.ackedAt !== undefined && last.left === undefined
}
