// Appends a message to a stream: tries again until the message is stored or refused, and tells its
// own message from that of another writer.

import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import { monotonicMillis } from "#clock/clocks.ts"
import { encodeMessage } from "#domain/messages/forms.ts"
import type { MessageBody, MessageType } from "#domain/messages/table.ts"
import { streams } from "#streams/index.ts"
import type { Nats } from "../connection/connection.ts"
import {
  AppendConflict,
  codeOf,
  type Failure,
  type NatsUnavailable,
  nothing,
  notStored,
  rollupFailed,
  wrongLastSequence,
  wrongLastSequenceInFlight
} from "../connection/errors.ts"
import type { PubAck } from "../connection/request.ts"
import { type Stored, typeHeader } from "./stored.ts"

export type StreamKey = keyof typeof streams

export interface Append<T extends MessageType> {
  readonly subject: string
  readonly type: T
  readonly body: MessageBody<T>
  /**
   * Sequence of the last message on this subject; 0: there is none. Unset: append whatever is
   * there.
   */
  readonly expect?: number
  /** Expect that sequence on this subject instead, on which nothing is appended. */
  readonly expectOn?: string
  /**
   * Names this message in the whole stream. The server stores one message of this name in the
   * stream's duplicate window, and acknowledges the others with the sequence of the first. It is
   * stored as a keyed hash: anybody may know the name, and nobody else makes the id.
   */
  readonly messageId?: string
  /**
   * Identifies this message among others on its subject. For callers that append again after a
   * failure: the first attempt may have been stored.
   */
  readonly id?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** The name of a message, and a subject of its stream. */
export type Named = Required<Pick<Append<MessageType>, "messageId" | "subject">>

export interface Appended {
  readonly seq: number
  readonly duplicate: boolean
}

/** Time for all attempts. The last attempt may end `attemptMillis` later. */
const budgetMillis = 5_000
const attemptMillis = 2_000
const namedMillis = 5_000

const idHeader = "Bellcast-Id"

/** An id for a message that may have to be appended more than once. */
export const freshId = Effect.flatMap(Random.nextInt, (a) =>
  Effect.map(Random.nextInt, (b) => a.toString(36) + b.toString(36))
)

/** The header by which the server knows a repeated message. */
const messageIdHeader = "Nats-Msg-Id"
const streamHeader = "Nats-Expected-Stream"

const headersOf = <T extends MessageType>(
  stream: StreamKey,
  { messageId, ...message }: Append<T>,
  type: string,
  id: string,
  messageIdOf: Nats["Service"]["messageIdOf"]
) => ({
  ...message.headers,
  [typeHeader]: type,
  [idHeader]: id,
  [streamHeader]: streams[stream].name,
  ...(messageId === undefined ? {} : { [messageIdHeader]: messageIdOf(messageId) }),
  ...(message.expect === undefined
    ? {}
    : { "Nats-Expected-Last-Subject-Sequence": String(message.expect) }),
  ...(message.expectOn === undefined
    ? {}
    : { "Nats-Expected-Last-Subject-Sequence-Subject": message.expectOn })
})

/** Reads the last message on a subject. */
export type ReadLast = (
  stream: StreamKey,
  subject: string
) => Effect.Effect<Stored | undefined, NatsUnavailable>

/**
 * Whether the server will never store the message. With the code for a message in flight, the
 * server still replicates a message on the subject, and that message may be this one.
 */
const isRefused = (code: number | undefined): boolean =>
  code !== undefined && code !== wrongLastSequenceInFlight

const appendedOf = ({ duplicate = false, seq }: PubAck): Appended => ({ seq, duplicate })

/** The last message on the subject, if an earlier attempt stored it. Otherwise a conflict. */
const findOwn = (last: ReturnType<ReadLast>, subject: string, id: string) =>
  Effect.flatMap(last, (found) =>
    found?.header(idHeader) === id
      ? Effect.succeed<Appended>({ seq: found.seq, duplicate: false })
      : Effect.fail(new AppendConflict({ subject }))
  )

/** See `EventLog.append`. */
export const makeAppend =
  (nats: Nats["Service"], readLast: ReadLast, readByAll: (name: MessageType) => number) =>
  <T extends MessageType>(stream: StreamKey, message: Append<T>) =>
    append(nats, readLast, stream, message, readByAll)

const append = Effect.fnUntraced(function* <T extends MessageType>(
  { messageIdOf, store }: Nats["Service"],
  readLast: ReadLast,
  stream: StreamKey,
  message: Append<T>,
  readByAll: (name: MessageType) => number
) {
  const { name } = streams[stream]
  const deadline = (yield* monotonicMillis) + budgetMillis
  const id = message.id ?? (yield* freshId)
  const { subject } = message
  const { body, type } = encodeMessage(message.type, message.body, readByAll)
  const headers = headersOf(stream, message, type, id, messageIdOf)
  const stored = { subject, payload: JSON.stringify(body), headers }
  /** An earlier attempt may have stored the message. */
  let isUncertain = message.id !== undefined
  while (true) {
    const result = yield* Effect.result(store(name, stored, attemptMillis))
    if (result._tag === "Success") return appendedOf(result.success)
    const code = codeOf(result.failure)
    if (code === wrongLastSequence)
      return yield* findOwn(isUncertain ? readLast(stream, subject) : nothing, subject, id)
    const isLast = (yield* monotonicMillis) >= deadline || isRefused(code)
    if (isLast) return yield* notStored(`append ${message.type}`, name, result.failure)
    isUncertain ||= code === undefined
    yield* Effect.sleep(code === undefined ? "100 millis" : "2 millis")
  }
})

/**
 * See `EventLog.named`. Publishes a message of this name that is never stored: a server looks for
 * the name before it refuses the rollup (nats-server 2.14 and 2.15, with and without replicas). A
 * wrong expected sequence would not do: without replicas, a server looks at the sequence first.
 */
export const findNamed =
  ({ messageIdOf, send }: Nats["Service"]) =>
  (stream: StreamKey, { messageId, subject }: Named) => {
    const { name } = streams[stream]
    const headers = new Map([
      // No such rollup exists, so each server refuses the message.
      ["Nats-Rollup", "none"],
      [streamHeader, name],
      [messageIdHeader, messageIdOf(messageId)]
    ])
    return Effect.callback<PubAck, Failure>((resume) => {
      const cancel = send<PubAck>(subject, "", namedMillis, headers, (result) =>
        resume(Effect.fromResult(result))
      )
      return Effect.sync(cancel)
    }).pipe(
      Effect.map(({ seq }): number | undefined => seq),
      Effect.catchIf(
        (failure) => codeOf(failure) === rollupFailed,
        () => nothing
      ),
      Effect.mapError((failure) => notStored("find by name", name, failure))
    )
  }
