// Decodes stored messages: those read by request and those that a consumer received.

import type { JsMsg } from "@nats-io/jetstream"
import { isOwnSource } from "#domain/broadcast.ts"
import { decodeMessage, isLater, type Malformed, nameOf } from "#domain/messages/forms.ts"
import type { Message } from "#domain/messages/table.ts"
import {
  headerIn,
  headersOf,
  type ReadHeaders,
  readHeaders,
  textOf
} from "../connection/headers.ts"
import type { StoredMessage } from "../connection/request.ts"
import type { DirectMessage } from "./read-direct.ts"

/** The header with name and number of a message (domain/messages/forms.ts). */
export const typeHeader = "Bellcast-Type"

/** A stored message, decoded into its newest form. */
export interface Stored {
  readonly subject: string
  readonly seq: number
  /** When the server stored it, milliseconds since the epoch. */
  readonly at: number
  readonly message: Message | Malformed
  /** The stored body. */
  readonly text: string
  readonly header: (name: string) => string | undefined
}

/** The name of a message, by the header alone: nothing is decoded. Undefined: it is of none. */
export const nameIn = ({ header }: Pick<Stored, "header">) => nameOf(header(typeHeader) ?? "")

/**
 * The `name/number` of a message that only a later version reads. What a publisher wrote is none,
 * but malformed: any number may stand there.
 */
export const laterTypeOf = ({ header, subject }: Stored): string | undefined => {
  const type = header(typeHeader) ?? ""
  return isLater(type) && !isOfPublisher(subject) ? type : undefined
}

const isOfPublisher = (subject: string): boolean =>
  subject.startsWith("bellcast.cmd.broadcast.") && !isOwnSource(subject.split(".")[3] ?? "")

/** NATS clients may publish broadcasts without the header. */
const typeOf = (subject: string, header: string | undefined): string =>
  header === undefined && subject.startsWith("bellcast.cmd.broadcast.")
    ? "broadcast/1"
    : (header ?? "")

/** What the headers say is not known, so neither is what the body means. */
const malformedHeaders = { type: "malformed", reason: "malformed headers" } as const

/** Decodes on first use: the projector skips broadcasts without decoding them. */
const toStored = (from: {
  subject: string
  seq: number
  at: number
  text: () => string
  headers: () => ReadHeaders
}): Stored => {
  let text: string | undefined
  let headers: ReadHeaders | undefined
  let message: Stored["message"] | undefined
  const read = () => {
    headers ??= from.headers()
    return headers
  }
  return {
    subject: from.subject,
    seq: from.seq,
    at: from.at,
    get text() {
      text ??= from.text()
      return text
    },
    get message() {
      message ??=
        read() === "malformed"
          ? malformedHeaders
          : decodeMessage(typeOf(from.subject, this.header(typeHeader)), this.text)
      return message
    },
    get header() {
      return headerOf(read())
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

/** The message as one that means nothing, for this reason: a fold passes over it. */
export const passedOver = ({ at, header, seq, subject, text }: Stored, reason: string): Stored => ({
  subject,
  seq,
  at,
  message: { type: "malformed", reason },
  text,
  header
})

// A function of its own: a copy has the function, and must not hold the message by it.
const headerOf =
  (headers: ReadHeaders): Stored["header"] =>
  (name) =>
    headerIn(headers, name)

const bytesOf = (base64: string | undefined): Uint8Array => Buffer.from(base64 ?? "", "base64")

/** A message that was read by request. */
export const storedOf = (message: StoredMessage): Stored =>
  toStored({
    subject: message.subject,
    seq: message.seq,
    at: Date.parse(message.time),
    text: () => textOf(bytesOf(message.data)),
    headers: () => readHeaders(bytesOf(message.hdrs))
  })

/** A message that a consumer received. */
export const storedOfGiven = (msg: JsMsg): Stored =>
  toStored({
    subject: msg.subject,
    seq: msg.seq,
    at: msg.time.getTime(),
    text: () => textOf(msg.data),
    headers: () => headersOf(msg)
  })

/** A message that was read directly. */
export const storedOfRead = ({ at, data, headers, seq, subject }: DirectMessage): Stored =>
  toStored({ subject, seq, at, text: () => textOf(data), headers })
