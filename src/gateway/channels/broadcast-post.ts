// POST /channels/{id}: accepts a broadcast. The response is 202 when JetStream has stored the
// message; other stages do the rest.
import { hash, randomUUID } from "node:crypto"
import * as Effect from "effect/Effect"
import {
  BroadcastBody,
  fitsOnePush,
  givenHeaders,
  headerNames,
  payloadOf,
  publisherHeaders,
  readHeaders
} from "#domain/broadcast.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { subjects } from "#streams/subjects.ts"
import { channelToken } from "#streams/tokens.ts"
import { readBody } from "../http/body.ts"
import { type ErrorDetail, errorIn, refuse, refuseInvalid } from "../http/errors.ts"
import type { Call } from "../http/request.ts"
import type { Operation } from "../operation.ts"
import { demandRoom } from "../quotas/room.ts"
import { channelIdOf } from "./id.ts"
import { Acknowledgement, accepted } from "./registration.ts"

interface Input {
  readonly body: BroadcastBody
  /** The headers as the client sent them, so that a NATS client can publish the same message. */
  readonly headers: Readonly<Record<string, string>>
  readonly key: string | undefined
}

const decodeBody = readBody(BroadcastBody)

const read = Effect.fnUntraced(function* ({ request }: Call, errors: Array<ErrorDetail>) {
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
  const body = (yield* decodeBody(request, errors)).value ?? {}
  return { body, headers: givenHeaders(given), key }
})

/**
 * The message id. A key names one broadcast per caller and channel, within the duplicate window of
 * LOG.
 */
const messageIdOf = (key: string | undefined, caller: string, channel: string): string =>
  key === undefined
    ? randomUUID()
    : hash("sha256", JSON.stringify([caller, channel, key]), "base64url")

const textOf = (payload: Uint8Array | undefined): string =>
  payload === undefined ? "" : Buffer.from(payload).toString("utf8")

/**
 * Whether a stored message is this broadcast. A NATS client may have used the message id for one of
 * its own, on another subject: then this one is not stored.
 */
const isSame = (
  { header, message, subject: stored }: Stored,
  { body, headers }: Input,
  subject: string
): boolean =>
  stored === subject &&
  message.type === "broadcast/1" &&
  textOf(payloadOf(message)) === textOf(payloadOf(body)) &&
  headerNames.every((name) => header(name) === headers[name])

const reused = errorIn(
  "header",
  "Idempotency-Key",
  "Idempotency-Key was used for another broadcast"
)

export const broadcastPost: Operation<Input> = {
  access: "publisher",
  takesJson: "withBody",
  exposes: ["Location"],
  read,
  run: Effect.fnUntraced(function* (input, { caller, params, rootUrl }) {
    const id = yield* channelIdOf(params)
    if (!fitsOnePush(input.body)) return yield* refuse("payloadTooLarge")
    yield* demandRoom("broadcast")
    const log = yield* EventLog
    const subject = subjects.broadcast("rest", channelToken(id))
    const { duplicate, seq } = yield* log.append("log", {
      subject,
      type: "broadcast/1",
      body: input.body,
      headers: { ...input.headers, ...publisherHeaders(caller!.id) },
      messageId: messageIdOf(input.key, caller!.id, id)
    })
    if (duplicate && input.key !== undefined) {
      const stored = yield* log.at("log", seq)
      if (stored !== undefined && !isSame(stored, input, subject))
        return yield* refuseInvalid([reused])
    }
    return {
      ...accepted,
      broadcast: seq,
      headers: { Location: `${rootUrl}/channels/${encodeURIComponent(id)}/broadcasts/${seq}` }
    }
  }),
  doc: {
    summary: "Broadcast to everybody who is registered to a channel",
    parameters: ["broadcast"],
    body: BroadcastBody,
    bodyExample: { data: { title: "Hello", body: "from Bellcast" } },
    responses: { 202: Acknowledgement },
    errors: [400, 403, 413, 415, 507]
  }
}
