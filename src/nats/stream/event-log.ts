// The streams LOG and WORK: append with an expected sequence, read one message, replay. Bellcast
// writes everything here that must not be lost.
import { DeliverPolicy } from "@nats-io/jetstream"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { MessageType } from "#domain/messages.ts"
import { Caches, MemoryCache } from "#memory/cache-memory.ts"
import { streams } from "#streams/index.ts"
import { Nats } from "../connection/connection.ts"
import {
  type AppendConflict,
  attempt,
  type NatsUnavailable,
  unavailable
} from "../connection/errors.ts"
import type { Query } from "../connection/request.ts"
import {
  type Append,
  type Appended,
  findNamed,
  makeAppend,
  type Named,
  type StreamKey
} from "./append.ts"
import { readAll } from "./pull.ts"
import type { DirectMessage } from "./read-direct.ts"
import {
  type From,
  firstSince,
  type Newest,
  readDirect,
  readFrom,
  readLastOf,
  readNewest
} from "./read-direct.ts"
import { copyOf, type Stored, storedOf, storedOfGiven, storedOfRead } from "./stored.ts"

/** Bytes of memory, about: the text of a message, and its values; 2 KB of objects. */
const bytesOf = ({ text }: Stored): number => 2 * text.length + 2_000

type Replay = <E = never, R = never>(
  stream: StreamKey,
  filters: ReadonlyArray<string>,
  each: (stored: Stored) => Effect.Effect<void, E, R> | void
) => Effect.Effect<void, E | NatsUnavailable, R>

export class EventLog extends Context.Service<
  EventLog,
  {
    /**
     * The message is durable when this returns. Fails with AppendConflict only if another message
     * than the expected one is the last on the subject.
     */
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
    /** Appends the only message of a subject. If the subject has one already, that one stays. */
    readonly once: <T extends MessageType>(
      stream: StreamKey,
      message: Pick<Append<T>, "subject" | "type" | "body">
    ) => Effect.Effect<void, NatsUnavailable>
    /**
     * The sequence of the message that was appended with this `messageId` in the stream's duplicate
     * window, on whatever subject; undefined: there is none. One request, which stores nothing.
     */
    readonly named: (
      stream: StreamKey,
      named: Named
    ) => Effect.Effect<number | undefined, NatsUnavailable>
    /** The last message on this subject, from the leader. */
    readonly last: (
      stream: StreamKey,
      subject: string
    ) => Effect.Effect<Stored | undefined, NatsUnavailable>
    /** The message at a sequence, from the leader or from the cache. */
    readonly at: (
      stream: StreamKey,
      seq: number
    ) => Effect.Effect<Stored | undefined, NatsUnavailable>
    /** Caches a message of LOG for `at`: this process is about to read the message. */
    readonly cache: (stored: Stored) => void
    /**
     * Passes to `each` every message that a filter matches, one by one and in order, up to the
     * present end of the stream. Runs what `each` returns before the next message.
     */
    readonly replay: Replay
    /**
     * As `replay`, filter after filter and from any replica. Needs no permission to create a
     * consumer.
     */
    readonly scan: Replay
    /**
     * The last messages before a sequence that a filter matches, the newest first. Any replica
     * responds: what was stored in the last second may be missing.
     */
    readonly newest: (
      stream: StreamKey,
      filter: string,
      bounds: Newest
    ) => Effect.Effect<ReadonlyArray<Stored>, NatsUnavailable>
    /** The first messages from a sequence on that a filter matches, in order, from any replica. */
    readonly following: (
      stream: StreamKey,
      filter: string,
      bounds: From
    ) => Effect.Effect<ReadonlyArray<Stored>, NatsUnavailable>
    /** As `last` for each subject that has any, from any replica: 1,024 in one request. */
    readonly lastOf: (
      stream: StreamKey,
      subjects: ReadonlyArray<string>
    ) => Effect.Effect<ReadonlyArray<Stored>, NatsUnavailable>
    /**
     * The sequence of the first message that was stored at a time or later, in milliseconds since
     * the epoch. Undefined: there is none.
     */
    readonly firstSince: (
      stream: StreamKey,
      millis: number
    ) => Effect.Effect<number | undefined, NatsUnavailable>
  }
>()("bellcast/nats/EventLog") {
  static readonly layer = Layer.effect(
    EventLog,
    Effect.gen(function* () {
      const nats = yield* Nats
      const cached = new MemoryCache<Stored>((yield* Caches).share("log"), 1)
      const readLast = (stream: StreamKey, subject: string) =>
        read(nats, stream, { last_by_subj: subject })
      const append = makeAppend(nats, readLast)
      return EventLog.of({
        append: append as EventLog["Service"]["append"],
        once: (stream, message) =>
          append(stream, { ...message, expect: 0 }).pipe(
            Effect.asVoid,
            Effect.catchTag("AppendConflict", () => Effect.void)
          ),
        named: findNamed(nats),
        last: readLast,
        at: (stream, seq) => {
          const known = stream === "log" ? cached.get(String(seq)) : undefined
          return known === undefined ? read(nats, stream, { seq }) : Effect.succeed(known)
        },
        cache: (stored) => cached.set(String(stored.seq), copyOf(stored), bytesOf(stored)),
        replay: replayWith(nats),
        scan: scanWith(nats),
        newest: (stream, filter, bounds) =>
          readMany("read the newest", () => readNewest(nats, streams[stream].name, filter, bounds)),
        following: (stream, filter, bounds) =>
          readMany("read on", () => readFrom(nats, streams[stream].name, filter, bounds)),
        lastOf: (stream, subjects) =>
          readMany("read the last", () => readLastOf(nats, streams[stream].name, subjects)),
        firstSince: (stream, millis) =>
          attempt("read by time", () => firstSince(nats, streams[stream].name, millis))
      })
    })
  )
}

const read = ({ message }: Nats["Service"], stream: StreamKey, query: Query) =>
  message(streams[stream].name, query).pipe(
    Effect.map((found) => (found === undefined ? undefined : storedOf(found))),
    Effect.mapError(unavailable("read"))
  )

const readMany = (operation: string, ask: () => Promise<ReadonlyArray<DirectMessage>>) =>
  Effect.map(attempt(operation, ask), (found) => found.map(storedOfRead))

/** Passes each message of the batches to `each`. */
const eachOf = Effect.fnUntraced(function* <M, E, R>(
  batches: AsyncGenerator<ReadonlyArray<M>, void>,
  each: (msg: M) => Effect.Effect<void, E, R> | void
) {
  while (true) {
    const next = yield* attempt("replay", () => batches.next())
    if (next.done === true) return
    for (const msg of next.value) yield* each(msg) ?? Effect.void
  }
})

const replayWith =
  ({ js }: Nats["Service"]): Replay =>
  (stream, filters, each) => {
    const options = { filter_subjects: [...filters], deliver_policy: DeliverPolicy.All }
    const batches = readAll(js, streams[stream].name, "all", options)
    return eachOf(batches, (msg) => each(storedOfGiven(msg)))
  }

const scanWith =
  (nats: Nats["Service"]): Replay =>
  (stream, filters, each) =>
    Effect.forEach(
      filters,
      (filter) =>
        eachOf(readDirect(nats, streams[stream].name, filter), (msg) => each(storedOfRead(msg))),
      { discard: true }
    )
