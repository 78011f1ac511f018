// The streams LOG and WORK: append with an expected sequence, read one message, replay. Bellcast
// writes everything here that must not be lost.
import { DeliverPolicy } from "@nats-io/jetstream"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { matchesWildcard } from "#basics/wildcard.ts"
import type { MessageType } from "#domain/messages/table.ts"
import { Caches, MemoryCache } from "#memory/cache-memory.ts"
import { streams } from "#streams/index.ts"
import { Nats } from "../connection/connection.ts"
import {
  type AppendConflict,
  attempt,
  isMessageMissing,
  type NatsUnavailable,
  nothing,
  unavailable
} from "../connection/errors.ts"
import { Processes, type WorkTally } from "../connection/processes.ts"
import type { Query } from "../connection/request.ts"
import {
  type Append,
  type Appended,
  findNamed,
  makeAppend,
  type Named,
  type StreamKey
} from "./append.ts"
import { countBySubject } from "./info.ts"
import { refusalOf } from "./later.ts"
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
import {
  copyOf,
  laterTypeOf,
  type Stored,
  storedOf,
  storedOfGiven,
  storedOfRead
} from "./stored.ts"

/** Bytes of memory, about: the text of a message, and its values; 2 KB of objects. */
const bytesOf = ({ text }: Stored): number => 2 * text.length + 2_000

/** A message that was erased is read no longer than this from the memory of a process. */
const cachedMillisMax = 30_000

type Replay = <E = never, R = never>(
  stream: StreamKey,
  filters: ReadonlyArray<string>,
  each: (stored: Stored) => Effect.Effect<void, E, R> | void,
  /** `withLater`: `each` gets messages, too, that only a later version reads. */
  options?: { readonly withLater: true }
) => Effect.Effect<void, E | NatsUnavailable, R>

/** Fails where only a later version reads a message. */
type Demand = (stream: StreamKey, stored: Stored) => Effect.Effect<Stored, NatsUnavailable>

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
    /**
     * Deletes a message of LOG and overwrites it: one of a draft, which another one has replaced or
     * ended, of a user who is erased, or older than the history.
     */
    readonly remove: (seq: number) => Effect.Effect<void, NatsUnavailable>
    /** How many messages of LOG each subject has that a filter matches. */
    readonly counts: (filter: string) => Effect.Effect<ReadonlyMap<string, number>, NatsUnavailable>
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
     * As `replay`, in order, after a sequence, up to `upTo` at the latest, and without a consumer.
     * With several filters it reads every message of the stream: a reading of each filter might
     * meet replicas that are behind by more or less, and pass over a message.
     */
    readonly readOn: <E = never, R = never>(
      stream: StreamKey,
      filters: ReadonlyArray<string>,
      bounds: { readonly after: number; readonly upTo: number },
      each: (stored: Stored) => Effect.Effect<void, E, R> | void
    ) => Effect.Effect<void, E | NatsUnavailable, R>
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
      const { readByAll, tally } = yield* Processes
      const demand = demandWith(tally)
      const cached = new MemoryCache<Stored>((yield* Caches).share("log"), 1)
      const readLast = (stream: StreamKey, subject: string) =>
        read(nats, stream, { last_by_subj: subject })
      const append = makeAppend(nats, readLast, readByAll)
      return EventLog.of({
        append: append as EventLog["Service"]["append"],
        once: (stream, message) =>
          append(stream, { ...message, expect: 0 }).pipe(
            Effect.asVoid,
            Effect.catchTag("AppendConflict", () => Effect.void)
          ),
        named: findNamed(nats),
        last: (stream, subject) => demandOne(demand, stream, readLast(stream, subject)),
        at: (stream, seq) => {
          const known = stream === "log" ? cached.get(String(seq), performance.now()) : undefined
          return known === undefined
            ? demandOne(demand, stream, read(nats, stream, { seq }))
            : Effect.succeed(known)
        },
        remove: (seq) => removeMessage(nats, streams.log.name, seq, true),
        counts: (filter) => countBySubject(nats, streams.log.name, filter),
        cache: (stored) => {
          const until = performance.now() + cachedMillisMax
          cached.set(String(stored.seq), copyOf(stored), bytesOf(stored), until)
        },
        replay: replayWith(nats, demand),
        scan: scanWith(nats, demand),
        readOn: readOnWith(nats, demand),
        newest: (stream, filter, bounds) =>
          readMany(demand, stream, "read the newest", () =>
            readNewest(nats, streams[stream].name, filter, bounds)
          ),
        following: (stream, filter, bounds) =>
          readMany(demand, stream, "read on", () =>
            readFrom(nats, streams[stream].name, filter, bounds)
          ),
        lastOf: (stream, subjects) =>
          readMany(demand, stream, "read the last", () =>
            readLastOf(nats, streams[stream].name, subjects)
          ),
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

/**
 * Deletes a message, if the stream has it, without a marker: the next one on its subject expects
 * the one before, or 0. `overwrites`: its bytes on disk, too, which takes 2 ms.
 */
export const removeMessage = (
  { jsm }: Pick<Nats["Service"], "jsm">,
  stream: string,
  seq: number,
  overwrites = false
): Effect.Effect<void, NatsUnavailable> =>
  attempt(`remove from ${stream}`, async () => {
    try {
      await jsm.streams.deleteMessage(stream, seq, overwrites)
    } catch (error) {
      if (!isMessageMissing(error)) throw error
    }
  })

const demandWith =
  (tally: WorkTally): Demand =>
  (stream, stored) => {
    const refusal = refusalOf(tally, stream, stored)
    return refusal === undefined ? Effect.succeed(stored) : Effect.fail(refusal)
  }

const demandOne = (
  demand: Demand,
  stream: StreamKey,
  found: Effect.Effect<Stored | undefined, NatsUnavailable>
) => Effect.flatMap(found, (stored) => (stored === undefined ? nothing : demand(stream, stored)))

const readMany = (
  demand: Demand,
  stream: StreamKey,
  operation: string,
  ask: () => Promise<ReadonlyArray<DirectMessage>>
) =>
  Effect.flatMap(attempt(operation, ask), (found) =>
    Effect.forEach(found, (each) => demand(stream, storedOfRead(each)))
  )

/** Passes each message of the batches to `each`. */
const eachOf = Effect.fnUntraced(function* <M, E, R>(
  batches: AsyncGenerator<ReadonlyArray<M>, void>,
  each: (msg: M) => Effect.Effect<void, E | NatsUnavailable, R> | void
) {
  while (true) {
    const next = yield* attempt("replay", () => batches.next())
    if (next.done === true) return
    for (const msg of next.value) yield* each(msg) ?? Effect.void
  }
})

/** `each`, of messages that this version reads. */
const readable =
  <E, R>(
    demand: Demand,
    stream: StreamKey,
    each: (stored: Stored) => Effect.Effect<void, E, R> | void
  ) =>
  (stored: Stored): Effect.Effect<void, E | NatsUnavailable, R> | void =>
    laterTypeOf(stored) === undefined ? each(stored) : Effect.asVoid(demand(stream, stored))

const readOnWith =
  (nats: Nats["Service"], demand: Demand): EventLog["Service"]["readOn"] =>
  (stream, filters, { after, upTo }, each) => {
    const one = readable(demand, stream, each)
    const [only = ">", ...others] = filters
    const filter = others.length === 0 ? only : ">"
    const patterns = filters.map((one) => one.replace(/>$/, "*"))
    const isWanted = ({ seq, subject }: DirectMessage) =>
      seq <= upTo && patterns.some((pattern) => matchesWildcard(pattern, subject))
    const batches = readDirect(nats, streams[stream].name, filter, after)
    return eachOf(until(batches, upTo), (msg) =>
      isWanted(msg) ? one(storedOfRead(msg)) : undefined
    )
  }

/** Batches up to the one with a message at or after a sequence. */
const until = async function* (
  batches: AsyncGenerator<ReadonlyArray<DirectMessage>, void>,
  upTo: number
): AsyncGenerator<ReadonlyArray<DirectMessage>, void> {
  for await (const batch of batches) {
    yield batch
    if (batch.at(-1)!.seq >= upTo) return
  }
}

const replayWith =
  ({ js }: Nats["Service"], demand: Demand): Replay =>
  (stream, filters, each, options) => {
    const all = { filter_subjects: [...filters], deliver_policy: DeliverPolicy.All }
    const batches = readAll(js, streams[stream].name, "all", all)
    const one = options?.withLater === true ? each : readable(demand, stream, each)
    return eachOf(batches, (msg) => one(storedOfGiven(msg)))
  }

const scanWith =
  (nats: Nats["Service"], demand: Demand): Replay =>
  (stream, filters, each, options) => {
    const one = options?.withLater === true ? each : readable(demand, stream, each)
    return Effect.forEach(
      filters,
      (filter) =>
        eachOf(readDirect(nats, streams[stream].name, filter), (msg) => one(storedOfRead(msg))),
      { discard: true }
    )
  }
