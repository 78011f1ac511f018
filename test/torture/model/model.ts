// What the rig knows for itself: what it asked for, what was acknowledged, and when. Times are
// those of performance.now(). No answer of the service is believed but an acknowledgement.
import type { Browser } from "../push/browser.ts"

/** Something asked for, and acknowledged or not. A change that got no answer is repeated. */
export interface Change {
  readonly startedAt: number
  ackedAt?: number
}

export const begin = (): Change => ({ startedAt: performance.now() })
export const acknowledge = (change: Change): void => {
  change.ackedAt = performance.now()
}

/** A browser, which several users may have one after the other. */
export interface Device {
  readonly browser: Browser
  readonly endpoint: string
  /** The subscriptions of its users, one after the other; each user once. */
  readonly owners: Array<Subscription>
  /** The browser unsubscribed at its push service, which answers 410 from then on. */
  unsubscribedAt?: number
  /** When a push service first said 404 or 410 of it, rightly or wrongly. */
  goneAt?: number
}

export interface Subscription {
  readonly user: User
  readonly device: Device
  /** The id that outcomes have, beside the user's. */
  readonly id: string
  readonly stored: Change
  /** By its user, by a renewal, or by the storing of the next owner. */
  removed?: Change
  /** The secret that renews it, where no later one can have been made. */
  secret?: string
  /** The subscriptions that the secret was sent for. */
  readonly heirs: Array<Subscription>
}

/** The name of a subscription in outcomes. */
export const keyOf = ({ id, user }: Subscription): string => `${user.pseudonym}.${id}`

/** From a registration to its end. */
export interface Membership {
  readonly joined: Change
  left?: Change
}

export interface User {
  readonly name: string
  readonly id: string
  /** Stands for the id in subjects, buckets and outcomes. */
  readonly pseudonym: string
  readonly subscriptions: Array<Subscription>
  readonly memberships: Map<string, Array<Membership>>
  /** A change of this user is under way: changes of one user are made one after the other. */
  isBusy: boolean
  /** A grant named the user, which an erasure leaves in LOG. */
  isGranted: boolean
  /** Set when the erasure is first asked for. The user never comes back. */
  erased?: Erasure
}

export interface Erasure extends Change {
  readonly cycle: number
}

/** The right of a guest to publish, which is revoked while requests are under way. */
export interface Right {
  /** Requests may be accepted for so long after the revocation was acknowledged. */
  readonly graceMillis: number
  /** A request was accepted by this right. */
  isHeld: boolean
  revoked?: Change
}

export interface Recipients {
  readonly channels: ReadonlyArray<string>
  readonly users: ReadonlySet<User>
  /** Get nothing, whatever else names them. */
  readonly except: ReadonlySet<User>
  /** Users named besides, of whom nothing is stored. */
  readonly strangers: number
  readonly exceptedStrangers: number
}

/** Whether somebody needs the right `users` for it, beside the rights to its channels. */
export const namesUsers = ({ channels, except, users }: Recipients): boolean =>
  channels.length === 0 || users.size + except.size > 0

/** How a broadcast is sent, which its publisher may change before it starts. */
export interface Terms {
  /** Pushes a second, at most; undefined: as fast as they can be sent. */
  readonly rate: number | undefined
  /** In its payload: 0 at first. */
  readonly edition: number
}

export interface Broadcast extends Recipients {
  /** In its payload or its Topic: how pushes are told apart. */
  readonly marker: string
  readonly via:
    | "post"
    | "post with key"
    | "nats"
    | "nats with id"
    | "to users"
    | "to users with key"
    | "redrive"
  readonly cycle: number
  readonly startedAt: number
  ackedAt?: number
  /** More than one where no response said whether a change was made. */
  terms: ReadonlyArray<Terms>
  /** The broadcast pauses when this share of its pushes fails; undefined: never by itself. */
  readonly failedShare?: number | undefined
  /** Whether its publisher gave it a time to start at. */
  readonly isScheduled: boolean
  /** When such a broadcast started: at the first of these times at least, at the second at most. */
  start?: readonly [number, number]
  /** Sequence in LOG, as acknowledged. */
  id?: number
  /** The right by which it is published, if it is one that ends. */
  readonly right?: Right
  /** Set when its publisher first asks for it; gone where it was finished before. */
  cancelled?: Change
  /** The only attempt was refused. */
  isRefused?: boolean
  /** Of a redrive: names of the subscriptions whose pushes were given up before. */
  readonly undelivered?: ReadonlySet<string>
}

/** The marker of a redrive, whose pushes have the payload of the broadcast before. */
export const againOf = (marker: string): string => `${marker}+`
/** The marker in the payload. */
export const payloadOf = (marker: string): string => marker.replace(/\++$/, "")

/** Counts of the pushes of one broadcast to one browser, as its push service saw them. */
export interface Receipts {
  accepted: number
  unanswered: number
  halved: number
  gone: number
  refused: number
}

/** The members when a cycle ended, with no change under way. */
export interface Moment {
  /** In RFC 3339. */
  readonly at: string
  /** Pseudonyms, by channel. */
  readonly members: ReadonlyMap<string, ReadonlySet<string>>
}

export interface Model {
  readonly channels: ReadonlyArray<string>
  readonly users: Array<User>
  readonly broadcasts: Map<string, Broadcast>
  /** By the marker in the payload: that of the last redrive. */
  readonly latest: Map<string, string>
  /** By marker, then by browser. */
  readonly receipts: Map<string, Map<Device, Receipts>>
  /** When push services read pushes, by marker. A push whose token is refused does not count. */
  readonly arrivals: Map<string, Array<number>>
  /** The editions of payloads that arrived, by marker. */
  readonly editions: Map<string, Set<number>>
  /** Subscriptions of one browser that users stored at the same moment, until a cycle ends. */
  readonly contested: Array<ReadonlyArray<Subscription>>
  /** Names of subscriptions that squatters tried to store, and must not have. */
  readonly squatted: Set<string>
  readonly moments: Array<Moment>
  /** What no fault explains, such as a push that cannot be decrypted. */
  readonly wrong: Array<string>
}

export const makeModel = (channels: ReadonlyArray<string>): Model => ({
  channels,
  users: [],
  broadcasts: new Map(),
  latest: new Map(),
  receipts: new Map(),
  arrivals: new Map(),
  editions: new Map(),
  contested: [],
  squatted: new Set(),
  moments: [],
  wrong: []
})

export const receiptsOf = (model: Model, marker: string, of: Device): Receipts | undefined =>
  model.receipts.get(marker)?.get(of)

/** Pushes count for the last redrive: those of the broadcast before had ended. */
const markerOf = ({ latest }: Model, payload: string): string => latest.get(payload) ?? payload

/** The payload of a push. */
export interface Said {
  /** The marker in its payload, or its Topic where it has no payload. */
  readonly payload: string
  readonly edition: number
  /** Its push service fails once for this share of the browsers. */
  readonly failingShare: number
}

/** Pushes that were under way to a user may arrive for so long after the erasure. */
const erasedMillis = 60_000

export const takeArrival = (model: Model, { edition, payload }: Said, at: number): void => {
  const marker = markerOf(model, payload)
  const arrivals = model.arrivals.get(marker) ?? []
  model.arrivals.set(marker, arrivals)
  arrivals.push(at)
  model.editions.set(marker, (model.editions.get(marker) ?? new Set()).add(edition))
}

export const takeReceipt = (
  model: Model,
  payload: string,
  of: Device,
  kind: keyof Receipts
): void => {
  const marker = markerOf(model, payload)
  if (!model.broadcasts.has(marker)) return void model.wrong.push(`unknown broadcast ${marker}`)
  const all = model.receipts.get(marker) ?? new Map<Device, Receipts>()
  model.receipts.set(marker, all)
  const receipts = all.get(of) ?? { accepted: 0, unanswered: 0, halved: 0, gone: 0, refused: 0 }
  all.set(of, receipts)
  receipts[kind]++
  const erasedAt = of.owners.at(-1)?.user.erased?.ackedAt
  if (erasedAt !== undefined && performance.now() - erasedAt > erasedMillis)
    model.wrong.push(`${of.owners.at(-1)!.user.name} was erased, and got a push of ${marker}`)
  if (kind === "gone") of.goneAt ??= performance.now()
}

/** Whether the user is registered now, as far as was acknowledged. */
export const isIn = (user: User, channel: string): boolean => {
  const last = user.memberships.get(channel)?.at(-1)
  return last?.joined.ackedAt !== undefined && last.left === undefined
}
