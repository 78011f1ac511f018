// How a broadcast is stored, to one channel or to others: the headers of the request, the rules of
// Idempotency-Key, and the parts of a broadcast that does not fit into one message.
import { hash, randomUUID } from "node:crypto"
import * as Effect from "effect/Effect"
import { canonicalJson } from "#basics/json.ts"
import {
  type BroadcastBody,
  fitsOnePush,
  givenHeaders,
  headerNames,
  payloadOf,
  publisherHeaders,
  readHeaders
} from "#domain/broadcast.ts"
import { partsOf, type Recipients } from "#domain/recipients.ts"
import type { Caller } from "#identity/identity.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { recipientsOf } from "#nats/stream/recipients.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { subjects } from "#streams/subjects.ts"
import { directToken } from "#streams/tokens.ts"
import { type ErrorDetail, errorIn, refuse, refuseInvalid } from "../http/errors.ts"
import type { ApiRequest } from "../http/request.ts"
import { demandRoom } from "../quotas/room.ts"

/** The headers of a request that publishes. */
export interface Given {
  /** As the client sent them, so that a NATS client can publish the same message. */
  readonly headers: Readonly<Record<string, string>>
  readonly key: string | undefined
}

/** Adds what is wrong with the headers to `errors`. */
export const readGiven = (request: ApiRequest, errors: Array<ErrorDetail>): Given => {
  const given = (name: string) => request.headers[name.toLowerCase()]
  for (const error of readHeaders(given).errors) errors.push({ location: "header", ...error })
  const key = given("Idempotency-Key")
  if (key !== undefined && !/^[\x20-\x7e]{1,255}$/.test(key)) {
    errors.push(
      errorIn(
        "header",
        "Idempotency-Key",
        "Idempotency-Key must be 1 to 255 printable ASCII characters"
      )
    )
  }
  return { headers: givenHeaders(given), key }
}

/** What a request publishes. */
interface Broadcast extends Given {
  readonly body: BroadcastBody
  /** Sorted: the same recipients are the same broadcast. */
  readonly to: Recipients
  /** Whether it goes to one channel, in the form that NATS clients publish. */
  readonly isPlain: boolean
}

/**
 * The message id. A key names one broadcast per caller and subject, within the duplicate window of
 * LOG.
 */
const messageIdOf = (key: string | undefined, caller: string, subject: string): string =>
  key === undefined
    ? randomUUID()
    : hash("sha256", JSON.stringify([caller, subject, key]), "base64url")

const textOf = (payload: Uint8Array | undefined): string =>
  payload === undefined ? "" : Buffer.from(payload).toString("utf8")

/**
 * Whether a stored message is this broadcast. A NATS client may have used the message id for one of
 * its own, on another subject: then this one is not stored.
 */
const isSame = (
  { header, message, subject: stored }: Stored,
  recipients: Recipients | undefined,
  { body, headers, to }: Broadcast,
  subject: string
): boolean =>
  stored === subject &&
  recipients !== undefined &&
  canonicalJson(recipients) === canonicalJson(to) &&
  textOf(payloadOf(message as BroadcastBody)) === textOf(payloadOf(body)) &&
  headerNames.every((name) => header(name) === headers[name])

const reused = errorIn(
  "header",
  "Idempotency-Key",
  "Idempotency-Key was used for another broadcast"
)

/** Stores recipients that do not fit into the message. Returns what the message says of them. */
const storeParts = Effect.fnUntraced(function* (to: Recipients, messageId: string) {
  const [first = {}, ...others] = partsOf(to)
  if (others.length === 0) return first
  const log = yield* EventLog
  const parts = yield* Effect.forEach([first, ...others], (body) =>
    log.append("log", {
      subject: subjects.part("rest"),
      type: "direct.part/1",
      body,
      // A repeated request finds the parts that it stored.
      messageId: hash("sha256", JSON.stringify([messageId, body]), "base64url")
    })
  )
  return { parts: parts.map(({ seq }) => seq) }
})

/** Stores a broadcast, unless its key names one. Returns its id. */
export const publish = Effect.fnUntraced(function* (broadcast: Broadcast, caller: Caller) {
  const { body, headers, isPlain, key, to } = broadcast
  if (!fitsOnePush(body)) return yield* refuse("payloadTooLarge")
  yield* demandRoom("broadcast")
  const log = yield* EventLog
  const subject = subjects.broadcast("rest", isPlain ? to.channels[0]! : directToken)
  const messageId = messageIdOf(key, caller.id, subject)
  const message = { subject, headers: { ...headers, ...publisherHeaders(caller.id) }, messageId }
  const { duplicate, seq } = yield* isPlain
    ? log.append("log", { ...message, type: "broadcast/1", body })
    : log.append("log", {
        ...message,
        type: "direct/1",
        body: { ...body, ...(yield* storeParts(to, messageId)) }
      })
  if (duplicate && key !== undefined) {
    const stored = yield* log.at("log", seq)
    if (
      stored !== undefined &&
      !isSame(stored, yield* recipientsOf(log, stored), broadcast, subject)
    )
      return yield* refuseInvalid([reused])
  }
  return seq
})
