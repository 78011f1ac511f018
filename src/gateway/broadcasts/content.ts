// The rights to see a broadcast and what it says: its name, its title in lists, its data. Its
// publisher and operators, and those who may send to its channels; of a broadcast that names users
// its publisher and operators alone, or any holder of the right `users` would read letters to
// others.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { isObject } from "#basics/json.ts"
import type { Listed } from "#broadcasts/list.ts"
import type { Origin, Standing } from "#broadcasts/state.ts"
import { readHead, readRecipients, wholeBroadcast } from "#broadcasts/whole-broadcast.ts"
import { type BroadcastBody, payloadHeader, publisherOf, readHeaders } from "#domain/broadcast.ts"
import { firstData, type Recipients } from "#domain/recipients.ts"
import type { Caller } from "#identity/identity.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { decodeToken, decodeTokens, isDirect } from "#streams/tokens.ts"
import { stamp } from "../http/preconditions.ts"
import type { Call } from "../http/request.ts"
import { ok } from "../http/response.ts"
import { noStore } from "../http/response-headers.ts"
import { recipientName, recordLookAtBroadcasts } from "../named-user.ts"
import { isOperator, maySend, remembering } from "../rights.ts"
import { BroadcastObject, detailedViewOf, recipientsIn, type Shown, viewOf } from "./view.ts"

/**
 * How much a caller sees of a broadcast. `whole`: all. `look`: all, as an operator, of what another
 * published. `counts`: all but what it says.
 */
export type Sight = "whole" | "look" | "counts"

/** A broadcast that a caller may see. */
export interface Seen {
  readonly origin: Origin
  readonly sight: Sight
}

/**
 * Undefined: the caller sees nothing of it. `may`: `maySend`, or a function that remembers what
 * that said.
 */
export const sightOf = Effect.fnUntraced(function* (
  caller: Caller,
  origin: Origin,
  may: typeof maySend = maySend
) {
  if (isPublisher(caller, origin)) return "whole"
  if (yield* isOperator(caller)) return "look"
  const to = yield* maySendAgain(caller, origin, may)
  return to && (namesUsers(to) ? "counts" : "whole")
})

/** An operator sends broadcasts again, which gives no right to publish. */
const isPublisher = ({ id }: Caller, { source, stored }: Origin): boolean =>
  source !== "redrive" && publisherOf(source, stored.header) === id

/** Excepted users get nothing: a broadcast to channels that excepts some is no letter to them. */
const namesUsers = ({ channels, users }: Recipients): boolean =>
  users.length > 0 || channels.length === 0

/** Whether a caller published a broadcast, is an operator, or may publish it now. */
export const maySee = (caller: Caller, origin: Origin) =>
  Effect.map(sightOf(caller, origin), (sight) => sight !== undefined)

/** Whether a caller may send to all whom a broadcast names. */
export const mayPublishNow = (caller: Caller, origin: Origin) =>
  Effect.map(maySendAgain(caller, origin, maySend), (to) => to !== undefined)

/** All whom a broadcast names; undefined: the caller may not send to each of them. */
const maySendAgain = Effect.fnUntraced(function* (
  caller: Caller,
  { channel, stored }: Origin,
  may: typeof maySend
) {
  // The body of a broadcast to one channel need not be read.
  if (!isDirect(channel)) {
    const isAllowed = yield* may(caller, [decodeToken(channel) ?? ""], false)
    return isAllowed ? { channels: [channel], users: [], except: [] } : undefined
  }
  const mayReach = ({ channels, except, users }: Recipients) =>
    may(caller, decodeTokens(channels), users.length + except.length > 0)
  const to = yield* readRecipients(yield* EventLog, stored, mayReach)
  if (to === undefined || !(yield* mayReach(to))) return undefined
  // Without channels it named users, even if all of them were excepted.
  return to.channels.length > 0 || (yield* may(caller, [], true)) ? to : undefined
})

/**
 * `sightOf` for many broadcasts of one request, which ask for the same few rights. `found` has
 * those that were seen, by their ids.
 */
export const makeSights = (caller: Caller) => {
  const may = remembering()
  const found = new Map<number, Sight>()
  const maySee = Effect.fnUntraced(function* (origin: Origin) {
    const sight = yield* sightOf(caller, origin, may)
    if (sight !== undefined) found.set(origin.stored.seq, sight)
    return sight !== undefined
  })
  return { found, maySee }
}

/** Characters of a text in a list: a payload has up to 4,000. */
export const textCharsMax = 200

/** A broadcast in a list, with its name and what browsers show of it. */
export const rowOf = (listed: Listed) => Effect.map(readRow(listed), ({ row }) => row)

const readRow = Effect.fnUntraced(function* ({ origin, standing }: Listed) {
  const head = yield* readHead(yield* EventLog, origin.stored, payloadSeqOf(origin, standing))
  const view = yield* viewOf(origin, standing, Effect.succeed(recipientsIn(head?.to)))
  const texts = textsIn(head?.data, textCharsMax)
  const row: typeof BroadcastObject.Type = { ...view, ...namesOf(origin), ...texts }
  return { row, texts, to: head?.to, view }
})

/** A broadcast in the list of one of its channels, for who may not publish on all of them. */
export const ListedBroadcast = Schema.Struct({
  ...BroadcastObject.fields,
  publisher: Schema.optionalKey(BroadcastObject.fields.publisher),
  to: Schema.optionalKey(BroadcastObject.fields.to)
}).annotate({ identifier: "ListedBroadcast" })

/**
 * A broadcast in a list for a caller. `sight`: undefined where the caller may publish on the
 * channel of the list, but not on all that the broadcast names: then title, state and counts.
 */
export const rowFor = Effect.fnUntraced(function* (listed: Listed, sight: Sight | undefined) {
  const { row, texts, to, view } = yield* readRow(listed)
  if (sight !== undefined) return sight === "counts" ? view : row
  const isLetter = to === undefined || namesUsers(to)
  return { ...glanceOf(view), ...(isLetter ? {} : texts) }
})

/** Members that name neither people nor other channels. */
const glanced = [
  ...(["id", "state", "people", "accepted", "delivered", "waiting", "retrying"] as const),
  ...(["expired", "dead", "gone", "cancelled", "shards", "shards_done", "done_share"] as const),
  ...(["finished", "last_modified", "accepted_at", "expires_at", "at", "started_at"] as const)
]
type Glance = Pick<typeof BroadcastObject.Type, (typeof glanced)[number]>

const glanceOf = (view: Glance): Glance =>
  Object.fromEntries(
    glanced.flatMap((name) => (name in view ? [[name, view[name]]] : []))
  ) as unknown as Glance

/** The response that shows a broadcast to a caller. */
export const shown = (call: Call, seen: Seen, standing: Standing) =>
  Effect.map(dataOf(call, seen, standing), (data) =>
    ok({ data }, { ...stamp(data.last_modified), ...noStore })
  )

/** A broadcast as its caller may see it. An operator's look is recorded. */
export const dataOf = Effect.fnUntraced(function* (
  call: Call,
  { origin, sight }: Seen,
  standing: Standing
) {
  if (sight === "look") yield* recordLookAtBroadcasts(call, [origin.stored.seq])
  const details = yield* detailedViewOf(origin, standing)
  const data: (typeof Shown.Type)["data"] =
    sight === "counts"
      ? details
      : { ...details, ...(yield* contentOf(origin, standing, call.caller)) }
  return data
})

/**
 * All that a broadcast says, as it was published or changed before its start. For its publisher
 * with the users that it names.
 */
export const contentOf = Effect.fnUntraced(function* (
  origin: Origin,
  standing: Standing,
  caller?: Caller
) {
  const log = yield* EventLog
  const whole = yield* wholeBroadcast(log, origin.stored, payloadSeqOf(origin, standing))
  const { data, data_by_locale = {} } = whole?.body ?? {}
  return {
    ...namesOf(origin),
    ...textsIn(firstData({ ...(data && { data }), data_by_locale })),
    ...(data && { data }),
    ...(Object.keys(data_by_locale).length > 0 && { data_by_locale }),
    ...(whole && caller && isPublisher(caller, origin) && usersNamedIn(whole.to))
  }
})

/** The users that a broadcast names; not the only one of a test of a subscription. */
const usersNamedIn = ({ except, subscription, users }: Recipients) => ({
  ...(users.length > 0 && subscription === undefined && { users: users.map(recipientName) }),
  ...(except.length > 0 && { except_users: except.map(recipientName) })
})

/** Sequence of the change with the payload that is sent; undefined: the broadcast has it. */
const payloadSeqOf = ({ source, stored }: Origin, { schedule }: Standing): number | undefined => {
  const former = source === "redrive" ? stored.header(payloadHeader) : undefined
  return schedule?.payload ?? (former === undefined ? undefined : Number(former))
}

/** The names that its senders gave a broadcast, which say as much as its texts. */
const namesOf = ({ stored }: Origin) => {
  const { name, topic } = readHeaders(stored.header).headers
  return { ...(name !== undefined && { name }), ...(topic !== undefined && { topic }) }
}

/**
 * The texts that browsers show of data: worker.js takes it from `notification`, else from `data`
 * itself.
 */
export const textsIn = (data: BroadcastBody["data"], charsMax = Number.POSITIVE_INFINITY) => {
  const { notification } = data ?? {}
  const members = isObject(notification) ? notification : (data ?? {})
  const { body, image, title } = members
  return {
    ...(typeof title === "string" && title !== "" && { title: cut(title, charsMax) }),
    ...(typeof body === "string" && body !== "" && { body: cut(body, charsMax) }),
    // An address that is cut leads elsewhere.
    ...(typeof image === "string" && image !== "" && image.length <= 5 * charsMax && { image })
  }
}

/** At most so many characters, the last of which says that more follow. Keeps pairs together. */
export const cut = (text: string, charsMax: number): string =>
  text.length <= charsMax ? text : `${text.slice(0, charsMax - 1).replace(/[\uD800-\uDBFF]$/, "")}…`
