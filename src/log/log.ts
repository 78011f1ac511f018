// The streams: append with an expectation, read back, replay. The only way anything is written that must not be lost.
import { headers as natsHeaders } from "@nats-io/transport-node"
import { Clock, Context, Effect, Layer, Random } from "effect"
import { decodeMessage, type Message, type MessageBody, type MessageType } from "#domain/messages.ts"
import { streams } from "#streams/index.ts"
import { AppendConflict, LogUnavailable } from "./errors.ts"
import { Nats } from "./nats.ts"
import { codeOf, type PubAck, type Query, type StoredMessage, wrongLastSequence, wrongLastSequenceInFlight } from "./request.ts"

export type StreamKey = keyof typeof streams

export interface Append<T extends MessageType> {
  readonly subject: string
  readonly type: T
  readonly body: MessageBody<T>
  /** Sequence of the last message on exactly this subject; 0: there must be none. Unset: whatever is there. */
  readonly expect?: number
  /** Recognised for the stream's duplicate window; a repetition is acknowledged with the sequence of the first. */
  readonly messageId?: string
  /** Tells this message from others on its subject. Given by those who append it again after a failure: the first try may have been stored. */
  readonly id?: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface Appended {
  readonly seq: number
  readonly duplicate: boolean
}

/** A stored message, decoded. */
export interface Stored {
  readonly subject: string
  readonly seq: number
  /** When the server stored it, milliseconds since the epoch. */
  readonly at: number
  readonly message: Message | { readonly type: "malformed"; readonly reason: string }
  /** The body as it was stored. */
  readonly text: string
  readonly header: (name: string) => string | undefined
}

const appendBudgetMillis = 5_000
const attemptMillis = 2_000

const typeHeader = "Bellcast-Type"
const idHeader = "Bellcast-Id"

/** An id for a message that may have to be appended more than once. */
export const freshId = Effect.flatMap(Random.nextInt, (a) => Effect.map(Random.nextInt, (b) => a.toString(36) + b.toString(36)))

/** What a message without Bellcast-Type is: foreign publishers send broadcasts with nothing but a body. */
const typeOf = (subject: string, header: string | undefined): string =>
  header === undefined || header === "" ? (subject.startsWith("bellcast.cmd.broadcast.") ? "broadcast/1" : "") : header

/** Decoded when somebody looks: the projector passes over every broadcast without looking. */
export const toStored = (from: {
  subject: string
  seq: number
  at: number
  text: () => string
  header: (name: string) => string
}): Stored => {
  let text: string | undefined
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
      message ??= decodeMessage(typeOf(from.subject, from.header(typeHeader)), this.text)
      return message
    },
    header: (name) => from.header(name) || undefined
  }
}

const textOf = (base64: string | undefined): string => Buffer.from(base64 ?? "", "base64").toString()

export const storedOf = (message: StoredMessage): Stored => {
  const headers = textOf(message.hdrs)
  return toStored({
    subject: message.subject,
    seq: message.seq,
    at: Date.parse(message.time),
    text: () => textOf(message.data),
    header: (name) => new RegExp(`^${name}:[ \\t]*(.*?)[ \\t]*\\r$`, "m").exec(headers)?.[1] ?? ""
  })
}

export class Log extends Context.Service<
  Log,
  {
    /** Durable once it returns. Fails with AppendConflict only when another message really stands on the subject. */
    readonly append: <T extends MessageType>(
      stream: StreamKey,
      message: Append<T>
    ) => Effect.Effect<Appended, AppendConflict | LogUnavailable>
    /** Appends what has a subject of its own. Written once, however often it is tried: what stands there already stays. */
    readonly once: <T extends MessageType>(
      stream: StreamKey,
      message: Pick<Append<T>, "subject" | "type" | "body">
    ) => Effect.Effect<void, LogUnavailable>
    /** The last message on exactly this subject, from the leader. */
    readonly last: (stream: StreamKey, subject: string) => Effect.Effect<Stored | undefined, LogUnavailable>
    /** The message at a sequence, from the leader. */
    readonly at: (stream: StreamKey, seq: number) => Effect.Effect<Stored | undefined, LogUnavailable>
    /** Every stored message that a filter matches, in order, up to the end as it is now. `each` sees them one by one. */
    readonly replay: <E, R>(
      stream: StreamKey,
      filters: ReadonlyArray<string>,
      each: (stored: Stored) => Effect.Effect<void, E, R>,
      fromSeq?: number
    ) => Effect.Effect<void, E | LogUnavailable, R>
  }
>()("bellcast/log/Log") {
  static readonly layer = Layer.effect(
    Log,
    Effect.gen(function* () {
      const { ask, js, message: messageOf } = yield* Nats
      const attempt = <A>(operation: string, run: () => Promise<A>) =>
        Effect.tryPromise({ try: run, catch: (cause) => new LogUnavailable({ operation, cause }) })

      const read = (stream: StreamKey, query: Query) =>
        messageOf(streams[stream].name, query).pipe(
          Effect.map((found) => (found === undefined ? undefined : storedOf(found))),
          Effect.mapError((cause) => new LogUnavailable({ operation: "read", cause }))
        )

      const append = Effect.fnUntraced(function* <T extends MessageType>(stream: StreamKey, message: Append<T>) {
        const deadline = (yield* Clock.currentTimeMillis) + appendBudgetMillis
        const id = message.id ?? (yield* freshId)
        const headers = natsHeaders()
        for (const [name, value] of Object.entries(message.headers ?? {})) headers.set(name, value)
        headers.set(typeHeader, message.type)
        headers.set(idHeader, id)
        headers.set("Nats-Expected-Stream", streams[stream].name)
        if (message.messageId !== undefined) headers.set("Nats-Msg-Id", message.messageId)
        if (message.expect !== undefined) headers.set("Nats-Expected-Last-Subject-Sequence", String(message.expect))
        const body = JSON.stringify(message.body)
        let uncertain = message.id !== undefined
        while (true) {
          const result = yield* Effect.result(ask<PubAck>(message.subject, body, attemptMillis, headers))
          if (result._tag === "Success") return { seq: result.success.seq, duplicate: result.success.duplicate === true }
          const cause = result.failure
          const unavailable = () => new LogUnavailable({ operation: `append ${message.type}`, cause })
          const code = codeOf(cause)
          if (code === wrongLastSequence) {
            // An attempt that timed out may have been stored: then the message that stands there is ours.
            const last = uncertain ? yield* read(stream, { last_by_subj: message.subject }) : undefined
            if (last?.header(idHeader) === id) return { seq: last.seq, duplicate: false }
            return yield* new AppendConflict({ subject: message.subject })
          }
          if (code !== undefined && code !== wrongLastSequenceInFlight) return yield* unavailable()
          if ((yield* Clock.currentTimeMillis) >= deadline) return yield* unavailable()
          if (code === undefined) uncertain = true
          yield* Effect.sleep(code === undefined ? "100 millis" : "2 millis")
        }
      })

      const once = <T extends MessageType>(stream: StreamKey, message: Pick<Append<T>, "subject" | "type" | "body">) =>
        append(stream, { ...message, expect: 0 }).pipe(
          Effect.asVoid,
          Effect.catchTag("AppendConflict", () => Effect.void)
        )

      const replay = Effect.fnUntraced(function* <E, R>(
        stream: StreamKey,
        filters: ReadonlyArray<string>,
        each: (stored: Stored) => Effect.Effect<void, E, R>,
        fromSeq = 1
      ) {
        const consumer = yield* attempt("replay", () =>
          js.consumers.get(streams[stream].name, {
            filter_subjects: [...filters],
            opt_start_seq: fromSeq,
            deliver_policy: "by_start_sequence"
          } as never)
        )
        let remaining = (yield* attempt("replay", () => consumer.info())).num_pending
        while (remaining > 0) {
          const batch = yield* attempt("replay", async () => {
            const got: Array<Stored> = []
            for await (const msg of await consumer.fetch({ max_messages: Math.min(remaining, 500), expires: 5_000 })) {
              got.push(
                toStored({
                  subject: msg.subject,
                  seq: msg.seq,
                  at: msg.time.getTime(),
                  text: () => msg.string(),
                  header: (name) => msg.headers?.get(name) ?? ""
                })
              )
            }
            if (got.length === 0) throw new Error("the server stopped answering")
            return got
          })
          remaining -= batch.length
          for (const stored of batch) yield* each(stored)
        }
        yield* attempt("replay", () => consumer.delete()).pipe(Effect.ignore)
      })

      return Log.of({
        append,
        once,
        replay,
        last: (stream, subject) => read(stream, { last_by_subj: subject }),
        at: (stream, seq) => read(stream, { seq })
      })
    })
  )
}
