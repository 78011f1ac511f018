// How a broadcast enters LOG: the rules of Idempotency-Key, the limits, and the parts of a
// broadcast that does not fit into one message.
import { randomUUID } from "node:crypto"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { canonicalJson } from "#basics/json.ts"
import { States } from "#broadcasts/states.ts"
import { type WholeBroadcast, wholeBroadcast } from "#broadcasts/whole-broadcast.ts"
import {
  type BroadcastBody,
  fitsOnePush,
  gatewaySource,
  headerNames,
  pauseWhenHeader,
  publisherHeaders
} from "#domain/broadcast.ts"
import { delayHeader, laterStart, startHeader } from "#domain/broadcast-start.ts"
import { type DraftForm, draftHeaders } from "#domain/draft.ts"
import { type DirectPart, partsOf, type Recipients } from "#domain/recipients.ts"
import type { Caller } from "#identity/identity.ts"
import type { Named } from "#nats/stream/append.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { subjects } from "#streams/subjects.ts"
import { channelsToken, decodeToken, directToken } from "#streams/tokens.ts"
import { errorIn, refuse, refuseInvalid } from "../http/response.ts"
import { demandRoom, RequestRates } from "../quotas.ts"

/** Of LOG: the headers of a broadcast, and the fact of its end. Measured. */
const overheadBytes = 1_030

const reused = errorIn(
  "header",
  "Idempotency-Key",
  "Idempotency-Key was used for another broadcast"
)

/** The broadcast of a request. */
export interface Broadcast {
  /** As the client sent them, so that a NATS client can publish the same message. */
  readonly headers: Readonly<Record<string, string>>
  /** The `Idempotency-Key` of the request. */
  readonly key: string | undefined
  readonly body: BroadcastBody
  /** Sorted: the same recipients are the same broadcast. */
  readonly to: Recipients
  /** The form of a draft that it is. It has no key then. */
  readonly draft?: DraftForm & { readonly at: number }
  /** Whether it goes to one channel, in the form that NATS clients publish. */
  readonly isPlain: boolean
}

/** Stores a broadcast, unless its key or its draft names one. Returns its id. */
export const storeBroadcast = Effect.fnUntraced(function* (broadcast: Broadcast, caller: Caller) {
  const { body, draft, isPlain, key, to } = broadcast
  if (!fitsOnePush(body)) return yield* refuse("payload-too-large")
  const log = yield* EventLog
  const place = isPlain ? to.channels[0]! : placeOf(to)
  const subject = subjects.broadcast(gatewaySource, place)
  const messageId = nameOf(broadcast, caller.id)
  const isNamed = key !== undefined || draft !== undefined
  // No limit refuses a stored broadcast: its publisher may not have received the response.
  const first = isNamed ? yield* log.named("log", { subject, messageId }) : undefined
  if (first !== undefined) {
    if (key !== undefined) yield* demandSame(first, broadcast, subject)
    return first
  }
  const counted = yield* admit(broadcast, caller)
  const message = { subject, headers: headersOf(broadcast, caller), messageId, ...expecting(draft) }
  const direct = isPlain ? undefined : yield* directOf(broadcast, messageId)
  const append = (
    direct === undefined
      ? log.append("log", { ...message, type: "broadcast", body })
      : log.append("log", { ...message, type: "direct", body: direct })
  ).pipe(Effect.catchTag("AppendConflict", () => orNamed({ subject, messageId })))
  const hasParts = direct !== undefined && "parts" in direct
  // Parts stay counted: they are stored.
  const { duplicate, seq } = yield* hasParts
    ? append
    : counted(append, (appended) => !appended.duplicate)
  // Another request with the key was faster.
  if (duplicate && key !== undefined) yield* demandSame(seq, broadcast, subject)
  return seq
})

/** Stands for the channel in the subjects of a broadcast to several channels or to users. */
const placeOf = ({ channels }: Recipients) => (channels.length > 0 ? channelsToken : directToken)

const headersOf = ({ draft, headers }: Broadcast, { id }: Caller) => ({
  ...headers,
  ...publisherHeaders(id),
  ...(draft === undefined ? {} : draftHeaders(draft))
})

/** A draft that changed since it was reviewed is not sent. */
const expecting = (draft: DraftForm | undefined) =>
  draft === undefined ? {} : { expect: draft.seq, expectOn: subjects.draft(draft.id) }

/**
 * The broadcast of this name where the form of the draft is gone: a server without replicas looks
 * for the form before it looks for the name.
 */
const orNamed = Effect.fnUntraced(function* (named: Named) {
  const seq = yield* (yield* EventLog).named("log", named)
  return seq === undefined ? yield* refuse("modified-meanwhile") : { seq, duplicate: true }
})

/** The name of the broadcast that a form of a draft becomes, whoever publishes it. */
export const nameOfDraft = ({ at, id }: { readonly at: number; readonly id: string }): string =>
  JSON.stringify(["draft", id, at])

/**
 * The name of the message. A key names one broadcast per caller and channel, or per caller and all
 * else, within the duplicate window of LOG.
 */
const nameOf = ({ draft, isPlain, key, to }: Broadcast, caller: string): string => {
  if (draft !== undefined) return nameOfDraft(draft)
  const channel = isPlain ? [decodeToken(to.channels[0]!)] : []
  return key === undefined ? randomUUID() : JSON.stringify([caller, ...channel, key])
}

/** Refuses what the service has no room for. */
const admit = (broadcast: Broadcast, caller: Caller) =>
  demandRoom("broadcast").pipe(
    Effect.andThen(demandPlace(broadcast, caller)),
    Effect.andThen(countBytes(caller, { ...broadcast.body, ...broadcast.to }))
  )

/** Refuses a broadcast that would wait where as many wait as may. */
const demandPlace = Effect.fnUntraced(function* ({ headers }: Broadcast, caller: Caller) {
  const now = yield* Clock.currentTimeMillis
  const start = laterStart((name) => headers[name], now)
  if (start !== undefined && (yield* States).isFull(caller.id))
    return yield* refuse("too-many-scheduled")
})

/**
 * Counts for a publisher the bytes that a broadcast, or a change of one, takes in LOG: by variants
 * and recipients a hundred times those of the least one. Counts them before they are stored, as
 * requests at the same time would pass the limit together. The returned function gives them back
 * if `append` fails, or stored nothing.
 */
export const countBytes = Effect.fnUntraced(function* ({ user }: Caller, given: object) {
  const { ofBroadcasts } = yield* RequestRates
  const bytes = Buffer.byteLength(JSON.stringify(given)) + overheadBytes
  yield* ofBroadcasts.count(user, bytes)
  const giveBack = ofBroadcasts.giveBack(user, bytes)
  return <A, E, R>(append: Effect.Effect<A, E, R>, isStored: (appended: A) => boolean) =>
    append.pipe(
      Effect.tapError(() => giveBack),
      Effect.tap((appended) => (isStored(appended) ? Effect.void : giveBack))
    )
})

/**
 * Returns the message of a broadcast to several channels or to users, after it stored what does not
 * fit into the message.
 */
export const directOf = Effect.fnUntraced(function* (
  { body: { data, data_by_locale }, to }: WholeBroadcast,
  name: string
) {
  const [first = {}, ...others] = partsOf(to, data_by_locale)
  const { subscription } = to
  const given = {
    ...(data === undefined ? {} : { data }),
    ...(subscription === undefined ? {} : { subscription })
  }
  if (others.length === 0) return { ...given, ...first }
  const parts = yield* Effect.forEach(others, (body, i) => storePart(body, i, name))
  return { ...given, ...first, parts }
})

/**
 * Stores a part of a broadcast, unless a request with its key stored one: a repeated request finds
 * its own. With another one the key was used for another broadcast, so no more is stored.
 */
const storePart = Effect.fnUntraced(function* (body: DirectPart, i: number, name: string) {
  const log = yield* EventLog
  const type = "direct.part"
  const { duplicate, seq } = yield* log.append("log", {
    subject: subjects.part,
    type,
    body,
    messageId: JSON.stringify([name, i])
  })
  const stored = duplicate ? (yield* log.at("log", seq))?.message : undefined
  if (duplicate && canonicalJson(stored) !== canonicalJson({ type, ...body }))
    return yield* refuseInvalid([reused])
  return seq
})

/** Fails if the message at a sequence, which the key names, is another broadcast. */
const demandSame = Effect.fnUntraced(function* (
  seq: number,
  broadcast: Broadcast,
  subject: string
) {
  const log = yield* EventLog
  const stored = yield* log.at("log", seq)
  if (stored === undefined) return
  if (!isSame(stored, yield* wholeBroadcast(log, stored), broadcast, subject))
    return yield* refuseInvalid([reused])
})

/** Whether a stored message is this broadcast. */
const isSame = (
  { header, subject: stored }: Stored,
  whole: WholeBroadcast | undefined,
  broadcast: Broadcast,
  subject: string
): boolean =>
  stored === subject &&
  whole !== undefined &&
  textOf(whole) === textOf(broadcast) &&
  [...headerNames, startHeader, delayHeader, pauseWhenHeader].every(
    (name) => header(name) === broadcast.headers[name]
  )

/** The same text for the same broadcast: no data is empty data. */
const textOf = ({ body: { data = {}, data_by_locale = {} }, to }: WholeBroadcast): string =>
  canonicalJson({ data, data_by_locale, to })
