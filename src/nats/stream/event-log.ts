// The streams: append with an expectation, read back, replay. The only way anything is written that must not be lost.
import { DeliverPolicy } from "@nats-io/jetstream"
import { Clock, Context, Effect, Layer, Random } from "effect"
import type { MessageBody, MessageType } from "#domain/messages.ts"
import { streams } from "#streams/index.ts"
import { Nats } from "../connection/connection.ts"
import { AppendConflict, type NatsUnavailable, unavailable } from "../connection/errors.ts"
import {
  codeOf,
  notStored,
  type Query,
  wrongLastSequence,
  wrongLastSequenceInFlight
} from "../connection/request.ts"
import { readAll } from "./read-all.ts"
import { type Stored, storedOf, storedOfGiven, typeHeader } from "./stored.ts"

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

const appendBudgetMillis = 5_000
const attemptMillis = 2_000

const idHeader = "Bellcast-Id"

/** Messages remembered, at most 32 KiB each. */
const rememberedMax = 256

/** An id for a message that may have to be appended more than once. */
export const freshId = Effect.flatMap(Random.nextInt, (a) =>
  Effect.map(Random.nextInt, (b) => a.toString(36) + b.toString(36))
)

export class EventLog extends Context.Service<
  EventLog,
  {
    /** Durable once it returns. Fails with AppendConflict only when another message really stands on the subject than was expected. */
    readonly append: {
      <T extends MessageType>(
        stream: StreamKey,
        message: Append<T> & { readonly expect?: never }
      ): Effect.Effect<Appended, NatsUnavailable>
      <T extends MessageType>(
        stream: StreamKey,
        message: Append<T>
      ): Effect.Effect<Appended, AppendConflict | NatsUnavailable>
    }
    /** Appends what has a subject of its own. Written once, however often it is tried: what stands there already stays. */
    readonly once: <T extends MessageType>(
      stream: StreamKey,
      message: Pick<Append<T>, "subject" | "type" | "body">
    ) => Effect.Effect<void, NatsUnavailable>
    /** The last message on exactly this subject, from the leader. */
    readonly last: (
      stream: StreamKey,
      subject: string
    ) => Effect.Effect<Stored | undefined, NatsUnavailable>
    /** The message at a sequence, from the leader. */
    readonly at: (
      stream: StreamKey,
      seq: number
    ) => Effect.Effect<Stored | undefined, NatsUnavailable>
    /** Keeps a message of LOG that a consumer was given: this process is about to ask for it. */
    readonly remember: (stored: Stored) => void
    /** Every stored message that a filter matches, in order, up to the end as it is now. `each` sees them one by one. */
    readonly replay: <E, R>(
      stream: StreamKey,
      filters: ReadonlyArray<string>,
      each: (stored: Stored) => Effect.Effect<void, E, R>
    ) => Effect.Effect<void, E | NatsUnavailable, R>
  }
>()("bellcast/nats/EventLog") {
  static readonly layer = Layer.effect(
    EventLog,
    Effect.gen(function* () {
      const { js, message: messageOf, store } = yield* Nats
      const read = (stream: StreamKey, query: Query) =>
        messageOf(streams[stream].name, query).pipe(
          Effect.map((found) => (found === undefined ? undefined : storedOf(found))),
          Effect.mapError(unavailable("read"))
        )

      const remembered = new Map<number, Stored>()
      const remember = (stored: Stored) => {
        remembered.set(stored.seq, stored)
        for (const oldest of remembered.keys()) {
          if (remembered.size <= rememberedMax) break
          remembered.delete(oldest)
        }
      }
      const at = (stream: StreamKey, seq: number) => {
        const known = stream === "log" ? remembered.get(seq) : undefined
        return known === undefined ? read(stream, { seq }) : Effect.succeed(known)
      }

      const append = Effect.fnUntraced(function* <T extends MessageType>(
        stream: StreamKey,
        message: Append<T>
      ) {
        const deadline = (yield* Clock.currentTimeMillis) + appendBudgetMillis
        const id = message.id ?? (yield* freshId)
        const headers = {
          ...message.headers,
          [typeHeader]: message.type,
          [idHeader]: id,
          "Nats-Expected-Stream": streams[stream].name,
          ...(message.messageId === undefined ? {} : { "Nats-Msg-Id": message.messageId }),
          ...(message.expect === undefined
            ? {}
            : { "Nats-Expected-Last-Subject-Sequence": String(message.expect) })
        }
        const stored = { subject: message.subject, payload: JSON.stringify(message.body), headers }
        let uncertain = message.id !== undefined
        while (true) {
          const result = yield* Effect.result(store(streams[stream].name, stored, attemptMillis))
          if (result._tag === "Success")
            return { seq: result.success.seq, duplicate: result.success.duplicate === true }
          const cause = result.failure
          const unavailable = () => notStored(`append ${message.type}`, streams[stream].name, cause)
          const code = codeOf(cause)
          if (code === wrongLastSequence) {
            // An attempt that timed out may have been stored: then the message that stands there is ours.
            const last = uncertain
              ? yield* read(stream, { last_by_subj: message.subject })
              : undefined
            if (last?.header(idHeader) === id) return { seq: last.seq, duplicate: false }
            return yield* new AppendConflict({ subject: message.subject })
          }
          if (code !== undefined && code !== wrongLastSequenceInFlight) return yield* unavailable()
          if ((yield* Clock.currentTimeMillis) >= deadline) return yield* unavailable()
          if (code === undefined) uncertain = true
          yield* Effect.sleep(code === undefined ? "100 millis" : "2 millis")
        }
      })

      const once = <T extends MessageType>(
        stream: StreamKey,
        message: Pick<Append<T>, "subject" | "type" | "body">
      ) =>
        append(stream, { ...message, expect: 0 }).pipe(
          Effect.asVoid,
          Effect.catchTag("AppendConflict", () => Effect.void)
        )

      const replay = Effect.fnUntraced(function* <E, R>(
        stream: StreamKey,
        filters: ReadonlyArray<string>,
        each: (stored: Stored) => Effect.Effect<void, E, R>
      ) {
        const batches = readAll(js, streams[stream].name, {
          filter_subjects: [...filters],
          deliver_policy: DeliverPolicy.All
        })
        while (true) {
          const next = yield* Effect.tryPromise({
            try: () => batches.next(),
            catch: unavailable("replay")
          })
          if (next.done === true) return
          for (const msg of next.value) yield* each(storedOfGiven(msg))
        }
      })

      return EventLog.of({
        append: append as EventLog["Service"]["append"],
        once,
        replay,
        last: (stream, subject) => read(stream, { last_by_subj: subject }),
        at,
        remember
      })
    })
  )
}
