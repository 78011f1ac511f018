// Stores a subscription of an import: the registrations first, then the subscription. So where a
// killed run left a subscription, its registrations are there, too.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import {
  atEndpoint,
  hasRoomFor,
  noOwners,
  ownerOf,
  withoutMoved
} from "#domain/subscription/owners.ts"
import { exhausted, type SubscriptionQuota } from "#domain/subscription/quota.ts"
import { isStandIn } from "#domain/subscription/stand-in.ts"
import {
  emptyList,
  nextTimestamp,
  type SubscriptionList
} from "#domain/subscription/subscription.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { keys } from "#streams/buckets.ts"
import { subjects } from "#streams/subjects.ts"
import type { ChannelToken } from "#streams/tokens.ts"
import { reachedInTime } from "../nats/applied.ts"
import { failed } from "../terminal/failed.ts"
import type { Checked } from "./check.ts"

export interface Limits extends SubscriptionQuota {
  readonly registrationsPerUserMax: number
}

/**
 * present: the user has the subscription. ended: the user had it, and it was removed, moved or gone
 * since. held: another user has it. full: the user has as much as allowed.
 */
export type LineResult = "stored" | "present" | "ended" | "held" | "full"

/** Tries of one append. All lines under way may be of one user: each round stores one of them. */
const triesMax = 100

/** Why nothing is to be stored; undefined: something is. */
const resultOf = Effect.fnUntraced(function* (
  { data, id }: Checked,
  list: SubscriptionList,
  limits: Limits
) {
  if (atEndpoint(list, data.endpoint) !== undefined) return "present"
  if (Object.hasOwn(list.tombstones, id) || Object.hasOwn(list.subscriptions, id)) return "ended"
  const page = yield* (yield* Buckets).get("subscriptions", keys.endpointOwners(id))
  const owners = page?.value ?? noOwners
  if (ownerOf(owners, id) !== undefined) return "held"
  const isFull = !hasRoomFor(owners, id) || exhausted(withoutMoved(list), data.endpoint, limits)
  return isFull ? "full" : undefined
})

/** Waits until the buckets show the command at `seq`. Returns whether the projector rejected it. */
const isRejected = Effect.fnUntraced(function* (seq: number) {
  const { refused = seq } = yield* reachedInTime(seq)
  if (refused < seq) return false
  return (yield* (yield* EventLog).last("log", subjects.rejected(seq))) !== undefined
})

/** Sequence of the last message on a subject, once the buckets show what it changed. */
const lastApplied = Effect.fnUntraced(function* (subject: string) {
  const { seq = 0 } = (yield* (yield* EventLog).last("log", subject)) ?? {}
  yield* reachedInTime(seq)
  return seq
})

/** Registers a user, who mostly is new, so that the first try needs no read. */
const register = Effect.fnUntraced(function* (
  { user: { id, user } }: Checked,
  channel: ChannelToken,
  { registrationsPerUserMax: registrationsMax }: Limits
) {
  const subject = subjects.registration(channel, user)
  const type = "registration.put/1"
  let expect = 0
  for (let tries = triesMax; tries > 0; tries--) {
    const body = { user: id, at: yield* Clock.currentTimeMillis, registrationsMax }
    const appended = yield* (yield* EventLog)
      .append("log", { subject, type, body, expect })
      .pipe(Effect.catchTag("AppendConflict", () => Effect.void))
    if (appended !== undefined) return appended.seq
    expect = yield* lastApplied(subject)
    const entry = yield* (yield* Buckets).get("registrations", keys.registration(channel, user))
    if (entry?.value.on) return 0
  }
  return yield* failed("a user changes registrations all the time: run it again")
})

/** Stores a subscription and its registrations. Undefined after a conflict: try again. */
const attempt = Effect.fnUntraced(function* (
  checked: Checked,
  list: SubscriptionList,
  limits: Limits
) {
  const { channels, data, id, user, vapidKey } = checked
  const subject = subjects.subscription(user.user)
  // The user who takes the subscription gets the registrations that the buckets show by then.
  for (const channel of channels) {
    const seq = yield* register(checked, channel, limits)
    if (seq > 0 && (yield* isRejected(seq))) return "full"
  }
  const lastModified = nextTimestamp(list, yield* Clock.currentTimeMillis)
  const body = { user: user.id, id, data, vapidKey, imported: true, lastModified } as const
  const appended = yield* (yield* EventLog)
    .append("log", { subject, type: "subscription.put/1", body, expect: list.seq })
    .pipe(Effect.catchTag("AppendConflict", () => Effect.void))
  if (appended !== undefined) return (yield* isRejected(appended.seq)) ? "held" : "stored"
  yield* lastApplied(subject)
  return undefined
})

/**
 * Ends the registrations of a stand-in, which nobody else could. Those of a user stay: that user,
 * or another line, may have wanted them meanwhile.
 */
const leave = Effect.fnUntraced(function* ({ channels, user: { id, user } }: Checked) {
  if (!isStandIn(id)) return
  for (const channel of channels) {
    const entry = yield* (yield* Buckets).get("registrations", keys.registration(channel, user))
    if (!entry?.value.on) continue
    const subject = subjects.registration(channel, user)
    const body = { user: id, at: yield* Clock.currentTimeMillis }
    yield* (yield* EventLog).append("log", { subject, type: "registration.delete/1", body })
  }
})

/** Stores what a line says, unless it is there. `dryRun`: stores nothing. */
export const storeOne = Effect.fnUntraced(function* (
  checked: Checked,
  limits: Limits,
  dryRun: boolean
) {
  const key = keys.subscriptions(checked.user.user)
  for (let tries = triesMax; tries > 0; tries--) {
    const list = (yield* (yield* Buckets).get("subscriptions", key))?.value ?? emptyList
    const found: LineResult | undefined = yield* resultOf(checked, list, limits)
    if (dryRun) return found ?? "stored"
    const result: LineResult | undefined = found ?? (yield* attempt(checked, list, limits))
    // An earlier run may have been killed between registrations and subscription.
    if (result === "held" || result === "full") yield* leave(checked)
    if (result !== undefined) return result
  }
  return yield* failed("a user changes subscriptions all the time: run it again")
})
