// The commands and facts about subscriptions, as stored in LOG; and which puts store the same
// subscription again. Pure.
import * as Schema from "effect/Schema"
import { StoredReason } from "../reason.ts"
import { Timestamp } from "../timestamp.ts"
import { foldedEndpoint } from "./endpoint.ts"

/**
 * PushSubscription.toJSON() of a browser, with further attributes that the client stored. They may
 * be anything: clients stored some, such as `locale`, before the gateway knew their meaning.
 */
export const SubscriptionData = Schema.StructWithRest(
  Schema.Struct({
    endpoint: Schema.String,
    keys: Schema.Struct({ auth: Schema.String, p256dh: Schema.String })
  }),
  [Schema.Record(Schema.String, Schema.Unknown)]
)
export type SubscriptionData = typeof SubscriptionData.Type

/** A part of subjects, so its characters are limited. Those of the gateway are SHA-256 in hex. */
const SubscriptionId = Schema.String.pipe(Schema.check(Schema.isPattern(/^[A-Za-z0-9_-]{1,64}$/u)))

/** A removal. Each has its own timestamp. */
const Removed = Schema.Struct({ id: Schema.String, lastModified: Timestamp })

/** SHA-256 of a secret, in base64url. */
const RenewalHash = Schema.String.pipe(Schema.check(Schema.isMaxLength(64)))

/**
 * Stored or replaced. `vapidKey` is the application server key the browser subscribed with (RFC
 * 8292 section 4.2), when known. `replaces`: another subscription of the user, which is removed;
 * with `renewal`, that secret proved that the browser is the same one, and is spent. `renewal`: of
 * the secret that was made with this put. `imported`: by `bellcast import`, which takes from a
 * stand-in only. `restored`: by an operator, who takes from nobody.
 */
export const SubscriptionPut = Schema.Struct({
  user: Schema.String,
  id: SubscriptionId,
  data: SubscriptionData,
  vapidKey: Schema.optionalKey(Schema.String),
  replaces: Schema.optionalKey(
    Schema.Struct({ ...Removed.fields, renewal: Schema.optionalKey(RenewalHash) })
  ),
  renewal: Schema.optionalKey(RenewalHash),
  imported: Schema.optionalKey(Schema.Literal(true)),
  restored: Schema.optionalKey(Schema.Literal(true)),
  lastModified: Timestamp
})
export type SubscriptionPut = typeof SubscriptionPut.Type

/**
 * Removed by the user, one or many at once. If a push service had ended one before, the secret that
 * renews it is void from then on.
 */
export const SubscriptionDelete = Schema.Struct({
  user: Schema.String,
  removed: Schema.Array(Removed)
})
export type SubscriptionDelete = typeof SubscriptionDelete.Type

/**
 * A new secret for renewing, of a user who stored the subscription again as it is: pushes go to it
 * again. `isRepeated`: of a renewal that was repeated.
 */
export const SubscriptionRenewable = Schema.Struct({
  user: Schema.String,
  id: Schema.String,
  generation: Schema.Int,
  renewal: RenewalHash,
  isRepeated: Schema.Boolean,
  at: Timestamp
})

/**
 * A push found the subscription dead: status 404 or 410, made with another VAPID key, or with keys
 * that nothing can be encrypted for (status 0: nothing was sent). `generation` is the sequence of
 * its put.
 */
export const SubscriptionGone = Schema.Struct({
  id: Schema.String,
  generation: Schema.Int,
  broadcast: Schema.Int,
  status: Schema.Int,
  cause: StoredReason,
  at: Timestamp
})
export type SubscriptionGone = typeof SubscriptionGone.Type

/**
 * Other users stored these subscriptions, with the same keys: they are theirs from then on.
 * `generation` as above; 0: a push service had ended it, or it was removed.
 */
export const SubscriptionMoved = Schema.Struct({
  moved: Schema.Array(Schema.Struct({ id: Schema.String, generation: Schema.Int })),
  at: Timestamp
})
export type SubscriptionMoved = typeof SubscriptionMoved.Type

/**
 * When the message `command` of a user's subscriptions was folded, these had been another user's
 * since the put `moved`, and no `subscription.moved` said so yet. The put itself goes if that user
 * is erased. `subject`: that of the command.
 */
export const SubscriptionTaken = Schema.Struct({
  command: Schema.Int,
  subject: Schema.String,
  taken: Schema.Array(Schema.Struct({ id: Schema.String, moved: Schema.Int })),
  at: Timestamp
})
/** Subscriptions that were another user's when a command was folded, each with that one's put. */
export type Marks = (typeof SubscriptionTaken.Type)["taken"]

/**
 * The push service refused the stored key and accepted this one: the browser subscribed with it.
 * `generation` as above.
 */
export const SubscriptionMatched = Schema.Struct({
  id: Schema.String,
  generation: Schema.Int,
  vapidKey: Schema.String,
  at: Schema.Int
})
export type SubscriptionMatched = typeof SubscriptionMatched.Type

/** `generation` is the sequence of the put that stored it. */
const named = { id: Schema.String, generation: Schema.Int }
const evidence = {
  ...named,
  broadcast: Schema.Int,
  cause: StoredReason,
  /** HTTP status of the push service, when there was a response. */
  status: Schema.optionalKey(Schema.Int),
  /** The worker that recorded it: host name and process id. */
  worker: Schema.String,
  at: Timestamp
}

/** A push ended for a reason that concerns this subscription alone. `strike` counts from 1. */
export const SubscriptionStruck = Schema.Struct({ ...evidence, strike: Schema.Int })
export type SubscriptionStruck = typeof SubscriptionStruck.Type

/** The last of three strikes, or an endpoint that the settings forbid: pushes to it stop. */
export const SubscriptionSuspended = Schema.Struct(evidence)
export type SubscriptionSuspended = typeof SubscriptionSuspended.Type

/**
 * Strikes and suspension end: a push was delivered, its user stored it again, or an operator
 * restored it.
 */
export const SubscriptionCleared = Schema.Struct({
  ...named,
  by: Schema.Literals(["push", "user", "operator"]),
  at: Timestamp
})
export type SubscriptionCleared = typeof SubscriptionCleared.Type

export type SubscriptionCommand =
  | ({ readonly type: "subscription.put" } & SubscriptionPut)
  | ({ readonly type: "subscription.delete" } & SubscriptionDelete)
  | ({ readonly type: "subscription.gone" } & SubscriptionGone)
  | ({ readonly type: "subscription.renewable" } & typeof SubscriptionRenewable.Type)
  | ({ readonly type: "subscription.moved" } & SubscriptionMoved)
  | ({ readonly type: "subscription.matched" } & SubscriptionMatched)
  | ({ readonly type: "subscription.struck" } & SubscriptionStruck)
  | ({ readonly type: "subscription.suspended" } & SubscriptionSuspended)
  | ({ readonly type: "subscription.cleared" } & SubscriptionCleared)

/**
 * Whether a put stores the same subscription again: then its generation stays, and pushes that wait
 * for it are sent.
 */
export const isSameBrowser = (
  former: Pick<SubscriptionPut, "data" | "vapidKey">,
  { data, vapidKey }: SubscriptionPut
): boolean =>
  foldedEndpoint(former.data.endpoint) === foldedEndpoint(data.endpoint) &&
  hasSameKeys(former.data, data) &&
  former.vapidKey === vapidKey

/** Whether two puts of one endpoint are of the same browser, whoever its user is. */
export const hasSameKeys = (a: SubscriptionData, b: SubscriptionData): boolean =>
  sameBytes(a.keys.auth, b.keys.auth) && sameBytes(a.keys.p256dh, b.keys.p256dh)

/** Clients may write both alphabets of base64, with padding or without. */
const sameBytes = (a: string, b: string): boolean =>
  a === b || Buffer.from(a, "base64").equals(Buffer.from(b, "base64"))

/**
 * The policy in the ids of stand-ins: users whom `bellcast import` makes for subscriptions whose
 * real users it does not know, one for each. When a real user stores such a subscription, the
 * registrations of the stand-in go along: nobody else could ever end them. No policy may have this
 * name, so no login is a stand-in.
 */
export const importPolicy = "import"

/** The id of the stand-in of a subscription. */
export const standInOf = (subscription: string): string => `${importPolicy}:${subscription}`
export const isStandIn = (user: string): boolean => user.startsWith(`${importPolicy}:`)
