// Stores a subscription of an import: the registrations first, then the subscription. So where a
// killed run left a subscription, its registrations are there, too.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { hasSameKeys, isStandIn } from "#domain/subscription/command.ts"
import {
  atEndpoint,
  hasRoomFor,
  noOwners,
  ownerOf,
  withoutMoved
} from "#domain/subscription/owners.ts"
import {
  emptyList,
  exhausted,
  isBlank,
  nextTimestamp,
  type SubscriptionList,
  type SubscriptionQuota
} from "#domain/subscription/subscription.ts"
import { erasureOf } from "#history/past.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { keys } from "#streams/buckets.ts"
import { subjects } from "#streams/subjects.ts"
import type { ChannelToken, UserToken } from "#streams/tokens.ts"
import { registeredChannels } from "#subscriptions/audience.ts"
import { askErasure } from "../nats/erase.ts"
import { isRejected, reachedInTime } from "../nats/log.ts"
import { failed } from "../terminal/output.ts"
import type { Checked } from "./line.ts"

export interface Limits extends SubscriptionQuota {
  readonly registrationsPerUserMax: number
}

/**
 * present: the user has the subscription. ended: the user had it, and it was removed, moved or gone
 * since, or the user was erased. held: another user has it. full: the user has as much as allowed.
 */
export type LineResult = "stored" | "present" | "ended" | "held" | "full"

/** Tries of one append. All lines under way may be of one user: each round stores one of them. */
const triesMax = 100

const listOf = Effect.fnUntraced(function* (user: UserToken) {
  const entry = yield* (yield* Buckets).get("subscriptions", keys.subscriptions(user))
  return entry?.value ?? emptyList
})

/** Whether a user may take the subscription from its owner: from a stand-in, with the same keys. */
const mayTake = Effect.fnUntraced(function* ({ data }: Checked, owner: UserToken) {
  const [, stored] = atEndpoint(yield* listOf(owner), data.endpoint) ?? []
  return stored?.standIn === true && hasSameKeys(stored.data, data)
})

/** Whether a user was erased, or is now. Any replica responds. */
const isErased = Effect.fnUntraced(function* (user: UserToken) {
  const about = [subjects.erased(user), subjects.erase(user)]
  return (yield* (yield* EventLog).lastOf("log", about)).length > 0
})

/** The reason to store nothing; else the stand-in that has the subscription, if one does. */
const resultOf = Effect.fnUntraced(function* (
  checked: Checked,
  list: SubscriptionList,
  limits: Limits
) {
  const { data, id } = checked
  if (atEndpoint(list, data.endpoint) !== undefined) return "present"
  if (Object.hasOwn(list.tombstones, id) || Object.hasOwn(list.subscriptions, id)) return "ended"
  // An old file still names the user. So this line is not stored, even if the user came back.
  if (yield* isErased(checked.user.user)) return "ended"
  const page = yield* (yield* Buckets).get("subscriptions", keys.endpointOwners(id))
  const owners = page?.value ?? noOwners
  const standIn = ownerOf(owners, id) as UserToken | undefined
  if (standIn !== undefined && !(yield* mayTake(checked, standIn))) return "held"
  const isFull = !hasRoomFor(owners, id) || exhausted(withoutMoved(list), data.endpoint, limits)
  return isFull ? "full" : { standIn }
})

/** Sequence of the last message on a subject, once the buckets show what it changed. */
const lastApplied = Effect.fnUntraced(function* (subject: string) {
  const { seq = 0 } = (yield* (yield* EventLog).last("log", subject)) ?? {}
  yield* reachedInTime(seq)
  return seq
})

/** A line that is being stored. */
interface Line extends Checked {
  /** The last message of LOG that was appended to store it; 0: none. */
  readonly appended: { seq: number }
}

/**
 * Registers a user, who mostly is new, so that the first try needs no read. `registrationsMax`: of
 * the user; undefined: any number.
 */
const register = Effect.fnUntraced(function* (
  { appended: last, user: { id, user } }: Line,
  channel: ChannelToken,
  registrationsMax?: number
) {
  const subject = subjects.registration(channel, user)
  const type = "registration.put"
  let expect = 0
  for (let tries = triesMax; tries > 0; tries--) {
    const at = yield* Clock.currentTimeMillis
    const body = { user: id, at, ...(registrationsMax !== undefined && { registrationsMax }) }
    const appended = yield* (yield* EventLog)
      .append("log", { subject, type, body, expect })
      .pipe(Effect.catchTag("AppendConflict", () => Effect.void))
    if (appended !== undefined) {
      last.seq = appended.seq
      return appended.seq
    }
    expect = yield* lastApplied(subject)
    const entry = yield* (yield* Buckets).get("registrations", keys.registration(channel, user))
    if (entry?.value.on) return 0
  }
  return yield* failed("a user changes registrations all the time: run it again")
})

/** Registers a user on channels of the line. False: the user has as many as allowed. */
const registerAll = Effect.fnUntraced(function* (line: Line, registrationsMax: number) {
  for (const channel of line.channels) {
    const seq = yield* register(line, channel, registrationsMax)
    if (seq > 0 && (yield* isRejected(seq))) return false
  }
  return true
})

/** Stores a subscription and its registrations. Undefined after a conflict: try again. */
const attempt = Effect.fnUntraced(function* (
  line: Line,
  list: SubscriptionList,
  { registrationsPerUserMax }: Limits,
  standIn: UserToken | undefined
) {
  const { data, id, user, vapidKey } = line
  const subject = subjects.subscription(user.user)
  // The registrations of a stand-in go along, however many the user holds: as with a POST.
  for (const channel of standIn === undefined ? [] : yield* registeredChannels(standIn))
    yield* register(line, channel)
  // The user who takes the subscription gets the registrations that the buckets show by then.
  if (!(yield* registerAll(line, registrationsPerUserMax))) return "full"
  const lastModified = nextTimestamp(list, yield* Clock.currentTimeMillis)
  const body = { user: user.id, id, data, vapidKey, imported: true, lastModified } as const
  const appended = yield* (yield* EventLog)
    .append("log", {
      subject,
      type: "subscription.put",
      body,
      expect: list.seq,
      // Names the subject where 0 does not mean that there is no entry: an empty list is stored.
      ...(isBlank(list) && list !== emptyList && { expectOn: subject })
    })
    .pipe(Effect.catchTag("AppendConflict", () => Effect.void))
  if (appended !== undefined) {
    line.appended.seq = appended.seq
    return (yield* isRejected(appended.seq)) ? "held" : "stored"
  }
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
    yield* (yield* EventLog).append("log", { subject, type: "registration.delete", body })
  }
})

/**
 * Registers the stand-in of a stored subscription on channels of the line that it lacks: an earlier
 * import may have named none. Other users are left alone: they may have left these channels.
 */
const complete = Effect.fnUntraced(function* (line: Line, limits: Limits) {
  const { channels, id, user } = line
  if (!isStandIn(user.id) || channels.length === 0) return "present"
  const joined = yield* registeredChannels(user.user)
  const missing = { ...line, channels: channels.filter((each) => !joined.includes(each)) }
  if (missing.channels.length === 0) return "present"
  const hasAll = yield* registerAll(missing, limits.registrationsPerUserMax)
  const owners = yield* (yield* Buckets).get("subscriptions", keys.endpointOwners(id))
  // A user who took the subscription meanwhile did not get these registrations.
  const isOwner = ownerOf(owners?.value ?? noOwners, id) === user.user
  if (hasAll && isOwner) return "present"
  yield* leave(missing)
  return isOwner ? "full" : "ended"
})

/**
 * Erases the user again if messages of the line were appended after an erasure: they would stay, as
 * those of a user who came back. Returns whether the user was erased.
 */
const eraseAgain = Effect.fnUntraced(function* ({ appended, user: { user } }: Line) {
  const erasure = yield* erasureOf(user)
  if (erasure === undefined) return false
  if (erasure.seq >= appended.seq) return true
  // The user may have come back by a message of their own.
  const last = yield* (yield* EventLog).last("log", subjects.subscription(user))
  const isBack = last !== undefined && last.seq > erasure.seq && last.seq !== appended.seq
  if (!isBack) yield* askErasure(user)
  return true
})

/** Stores what a line says, unless it is there. `dryRun`: stores nothing. */
export const storeOne = Effect.fnUntraced(function* (
  checked: Checked,
  limits: Limits,
  dryRun: boolean
) {
  const line: Line = { ...checked, appended: { seq: 0 } }
  const result = yield* storeLine(line, limits, dryRun)
  return line.appended.seq > 0 && (yield* eraseAgain(line)) ? "ended" : result
})

const storeLine = Effect.fnUntraced(function* (line: Line, limits: Limits, dryRun: boolean) {
  for (let tries = triesMax; tries > 0; tries--) {
    const list = yield* listOf(line.user.user)
    const found = yield* resultOf(line, list, limits)
    const isOpen = typeof found === "object"
    if (dryRun) return isOpen ? "stored" : found
    const result: LineResult | undefined = isOpen
      ? yield* attempt(line, list, limits, found.standIn)
      : found
    // An earlier run may have been killed between registrations and subscription.
    if (result === "held" || result === "full") yield* leave(line)
    if (result === "present") return yield* complete(line, limits)
    if (result !== undefined) return result
  }
  return yield* failed("a user changes subscriptions all the time: run it again")
})
