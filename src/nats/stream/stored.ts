// Decodes stored messages: those read by request and those that a consumer received.

import type { JsMsg, StoredMsg } from "@nats-io/jetstream"
import type { MsgHdrs } from "@nats-io/transport-node"
import { decodeMessage, type Message } from "#domain/messages/messages.ts"
import { headerIn } from "../connection/headers.ts"
import type { StoredMessage } from "../connection/request.ts"

/** The header with the type of the body (domain/messages/messages.ts). */
export const typeHeader = "Bellcast-Type"

/** A stored message, decoded. */
export interface Stored {
  readonly subject: string
  readonly seq: number
  /** When the server stored it, milliseconds since the epoch. */
  readonly at: number
  readonly message: Message | { readonly type: "malformed"; readonly reason: string }
  /** The stored body. */
  readonly text: string
  readonly header: (name: string) => string | undefined
}

/** NATS clients may publish broadcasts without the header. */
const typeOf = (subject: string, header: string | undefined): string =>
  header === undefined || header === ""
    ? subject.startsWith("bellcast.cmd.broadcast.")
      ? "broadcast/1"
      : ""
    : header

/** Decodes on first use: the projector skips broadcasts without decoding them. */
const toStored = (from: {
  subject: string
  seq: number
  at: number
  text: () => string
  header: () => Stored["header"]
}): Stored => {
  let text: string | undefined
  let header: Stored["header"] | undefined
  let message: Stored["message"] | undefined
  return {
    subject: from.subject,
    seq: from.seq,
    at: from.at,
    get text() {
      text ??= from.text()
      return text
    },
    get message() {
      message ??= decodeMessage(typeOf(from.subject, this.header(typeHeader)), this.text)
      return message
    },
    get header() {
      header ??= from.header()
      return header
    }
  }
}

/** A copy without the received bytes: they are slices of the buffers that the socket filled. */
export const copyOf = ({ at, header, message, seq, subject, text }: Stored): Stored => ({
  subject,
  seq,
  at,
  message,
  text,
  header
})

const textOf = (base64: string | undefined): string =>
  Buffer.from(base64 ?? "", "base64").toString()

// Functions of their own: a copy has the function, and must not hold the message by it.
const headerInText =
  (headers: string): Stored["header"] =>
  (name) =>
    new RegExp(`^${name}:[ \\t]*(.*?)[ \\t]*\\r$`, "m").exec(headers)?.[1] || undefined

const headerOf =
  (headers: MsgHdrs | undefined): Stored["header"] =>
  (name) =>
    headerIn(headers, name)

/** A message that was read by request. */
export const storedOf = (message: StoredMessage): Stored =>
  toStored({
    subject: message.subject,
    seq: message.seq,
    at: Date.parse(message.time),
    text: () => textOf(message.data),
    header: () => headerInText(textOf(message.hdrs))
  })

const storedWith = (msg: JsMsg | StoredMsg, headers: () => MsgHdrs | undefined): Stored =>
  toStored({
    subject: msg.subject,
    seq: msg.seq,
    at: msg.time.getTime(),
    text: () => msg.string(),
    header: () => headerOf(headers())
  })

/** A message that a consumer received. */
export const storedOfGiven = (msg: JsMsg): Stored => storedWith(msg, () => msg.headers)

/** A message that was read without a consumer (read-direct.ts). */
export const storedOfRead = (msg: StoredMsg): Stored => storedWith(msg, () => msg.header)
