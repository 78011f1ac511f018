// How a request writes: decide on the current state, append a command that expects exactly this
// state, wait until the projection has applied the command, and respond from the new state. After
// another write in between (AppendConflict), read the state again and decide again. Two kinds of
// state are written: a user's subscriptions, and a registration in a channel.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { monotonicMillis } from "#clock/clocks.ts"
import { byHeaders } from "#domain/broadcast.ts"
import {
  evolveRegistration,
  type Registration,
  type RegistrationCommand,
  sharedIsFull
} from "#domain/registration.ts"
import type { SubscriptionCommand } from "#domain/subscription/command.ts"
import { withoutMoved } from "#domain/subscription/owners.ts"
import {
  emptyList,
  evolveList,
  growsList,
  type SubscriptionList
} from "#domain/subscription/subscription.ts"
import type { NatsUnavailable } from "#nats/connection/errors.ts"
import { appliedMillis, Watermark } from "#nats/follower/watermark.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import type { BucketOf } from "#nats/kv/values.ts"
import type { Append } from "#nats/stream/append.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { Space } from "#nats/watch/space.ts"
import { bucketStream, type EntryKey, keys } from "#streams/buckets.ts"
import { subjects } from "#streams/subjects.ts"
import type { ChannelToken, UserToken } from "#streams/tokens.ts"
import type { ErrorCode } from "./http/error-table.ts"
import type { Call } from "./http/request.ts"
import { type ApiResponse, Refused, refuse } from "./http/response.ts"
import {
  bytesOfChange,
  demandRoom,
  demandRoomIn,
  type Growth,
  isNewcomer,
  oneWriteAtATime,
  RequestRates,
  writeMillis
} from "./quotas.ts"

type Command = SubscriptionCommand | RegistrationCommand

/** A command to store and the response from the state after it. */
interface Change<S, C> {
  readonly _tag: "Change"
  readonly command: C
  /** The streams that grow by the command, if not those of its kind. */
  readonly growth?: Growth
  /** Whether a subscription of another user moves to the caller. */
  readonly moves?: boolean
  /** Whom LOG names as the one who wants it. By default the caller, if it is another user. */
  readonly by?: string
  readonly response: (state: S) => ApiResponse
}

/** The decision on a state: a response without a write, or a change. */
export type Decision<S, C> =
  | { readonly _tag: "Unchanged"; readonly response: ApiResponse }
  | Change<S, C>

/** A response without a write. */
export const unchanged = (response: ApiResponse) => ({ _tag: "Unchanged", response }) as const

/** A write. `response`: the same from every state, or made from the state after the command. */
export const changed = <const C extends Command, S = unknown>(
  command: C,
  response: ApiResponse | ((state: S) => ApiResponse),
  more: Pick<Change<S, C>, "growth" | "moves" | "by"> = {}
): Change<S, C> => ({
  _tag: "Change",
  command,
  response: typeof response === "function" ? response : () => response,
  ...more
})

/** The caller who writes, the user whose state changes, and the request. */
export type Writer = Pick<Call, "request" | "caller" | "user">

/** A user's subscriptions, as the leader of the bucket has them. */
export const listOf = (user: UserToken) =>
  Effect.map(valueAt("subscriptions", keys.subscriptions(user)), (list) =>
    withoutMoved(list ?? emptyList)
  )

/** Changes a user's subscriptions. */
export const changeList = <E = never, R = never>(
  writer: Writer,
  decide: (
    list: SubscriptionList,
    now: number
  ) => Effect.Effect<Decision<SubscriptionList, SubscriptionCommand>, E | Refused, R>
) => {
  const { user } = writer.user!
  const key = keys.subscriptions(user)
  return change<SubscriptionList, SubscriptionCommand, E | Refused, R>(
    {
      places: [{ bucket: "subscriptions", key }],
      growthOf: (list, command) =>
        command.type === "subscription.put" && growsList(list, command)
          ? "subscription"
          : "renewal",
      subject: subjects.subscription(user),
      seqOf: ({ seq }) => seq,
      isStored: (list) => list !== emptyList,
      read: listOf(user),
      evolve: evolveList,
      refusal: "held-by-another"
    },
    writer,
    decide
  )
}

/** Changes a user's registration in a channel. */
export const changeRegistration = <E, R>(
  channel: ChannelToken,
  writer: Writer,
  decide: (
    registration: Registration | undefined,
    now: number
  ) => Effect.Effect<Decision<Registration | undefined, RegistrationCommand>, E, R>
) => {
  const { user } = writer.user!
  const key = keys.registration(channel, user)
  return change<Registration | undefined, RegistrationCommand, E, R>(
    {
      places: [
        { bucket: "registrations", key },
        { bucket: "channels", key: keys.channelRegistrations(channel) },
        { bucket: "registrations", key: keys.registrationCounts(user) }
      ],
      growthOf: () => "registration",
      subject: subjects.registration(channel, user),
      seqOf: (registration) => registration?.seq ?? 0,
      isStored: (registration) => registration !== undefined,
      read: valueAt("registrations", key),
      evolve: evolveRegistration,
      refusal: "too-many-registrations"
    },
    writer,
    decide
  )
}

export const valueAt = Effect.fnUntraced(function* <K extends string>(bucket: BucketOf<K>, key: K) {
  return (yield* (yield* Buckets).get(bucket, key))?.value
})

type PlaceKey = EntryKey<
  "subscriptions" | "registration" | "registrationCounts" | "channelRegistrations"
>

interface Place {
  readonly bucket: BucketOf<PlaceKey>
  readonly key: PlaceKey
}

/** A kind of write: the places that it changes, and how its state is read. */
interface Kind<S, C extends Command> {
  /** The key of the state, then the other keys that a put changes. */
  readonly places: readonly [Place, ...Place[]]
  /** The kind of room that a put needs. */
  readonly growthOf: (state: S, command: C) => Growth
  readonly subject: string
  readonly seqOf: (state: S) => number
  /** Whether a state that expects 0 is stored: the projector does not look for one otherwise. */
  readonly isStored: (state: S) => boolean
  readonly read: Effect.Effect<S, NatsUnavailable, Buckets>
  readonly evolve: (state: S, command: C, seq: number) => S
  /** The error of a put that the projection rejects, as another command came before it. */
  readonly refusal: ErrorCode
}

/** One write, from its first decision to its response. */
interface Write<S, C extends Command, E, R> {
  readonly kind: Kind<S, C>
  readonly writer: Writer
  readonly decide: (state: S, now: number) => Effect.Effect<Decision<S, C>, E, R>
  /** The newest sequence that led to a conflict. Not worth another decision. */
  conflictSeq: number
  /** The last command of LOG that the state which is read next includes; 0: unknown. */
  includedSeq: number
  /** As what the write was counted: each counts once, also where it is decided again. */
  counted: "nothing" | "change" | "move"
}

const conflictDelayMillis = 10

/** The response to a write, or 409 when others of the state use up its time. */
const change = Effect.fnUntraced(function* <S, C extends Command, E, R>(
  kind: Kind<S, C>,
  writer: Writer,
  decide: Write<S, C, E, R>["decide"]
) {
  const write: Write<S, C, E, R> = {
    kind,
    writer,
    decide,
    conflictSeq: -1,
    includedSeq: 0,
    counted: "nothing"
  }
  const deadline = (yield* monotonicMillis) + writeMillis
  const tried = untilStored(write, deadline)
  return yield* oneWriteAtATime(kind.subject, writer.user!.user, tried, tooManyWrites(kind))
})

const tooManyWrites = Effect.fnUntraced(function* <S, C extends Command>({ places }: Kind<S, C>) {
  // While the bucket is full, the state never changes: then the error is 507.
  yield* demandRoomIn(places.map(({ bucket }) => bucket))
  return yield* refuse("too-many-writes")
})

/** Tries a write again after conflicts with those of other processes. */
const untilStored = Effect.fnUntraced(function* <S, C extends Command, E, R>(
  write: Write<S, C, E, R>,
  deadline: number
) {
  const { kind } = write
  while (true) {
    const state = yield* kind.read
    const now = yield* Clock.currentTimeMillis
    const expect = Math.max(kind.seqOf(state), write.includedSeq)
    if (expect > write.conflictSeq) {
      const response = yield* attempt(write, state, now, expect)
      if (response !== undefined) return response
      // The state was behind LOG, and is not any more.
      if (write.includedSeq > expect) continue
      write.conflictSeq = expect
    }
    if ((yield* monotonicMillis) >= deadline) return yield* tooManyWrites(kind)
    yield* Effect.sleep(conflictDelayMillis)
    // The sequence of a state may be behind that of the last command: entries are forgotten, users
    // are erased, and some commands change nothing.
    const last = yield* lastApplied(kind)
    // LOG has nothing on the subject any more, so what was expected before says nothing.
    if (last === 0) write.conflictSeq = -1
    write.includedSeq = last ?? 0
  }
})

/**
 * Decides on a state and stores the command. Undefined after a conflict, and where a state that is
 * behind LOG leaves nothing to store: try again.
 */
const attempt = Effect.fnUntraced(function* <S, C extends Command, E, R>(
  write: Write<S, C, E, R>,
  state: S,
  now: number,
  expect: number
) {
  const { decide, kind } = write
  const decided = yield* Effect.result(decide(state, now))
  if (storesNothing(decided) && (yield* isBehind(write, expect))) return undefined
  const decision = yield* Effect.fromResult(decided)
  if (decision._tag === "Unchanged") return decision.response
  const { command, response } = decision
  yield* checkQuotas(write, decision, state)
  const seq = yield* append(write, decision, expect, kind.isStored(state))
  if (seq === undefined) return undefined
  yield* awaitApplied(kind.places, command, seq, kind.refusal)
  return response(kind.evolve(state, command, seq))
})

/** Whether the response says that there is nothing to change: no append then checks the state. */
const storesNothing = (
  decided: Result.Result<Pick<Decision<never, never>, "_tag">, unknown>
): boolean =>
  Result.isSuccess(decided)
    ? decided.success._tag === "Unchanged"
    : decided.failure instanceof Refused && decided.failure.response.status === 404

/**
 * Whether LOG has a command that the state lacks: that of a request which ended before the
 * projection applied it must count. Then the next state includes it. Looks once for each write.
 */
const isBehind = Effect.fnUntraced(function* <S, C extends Command, E, R>(
  write: Write<S, C, E, R>,
  expect: number
) {
  if (write.includedSeq > 0) return false
  const seq = yield* lastSeq(write.kind.subject)
  if (seq <= expect || (yield* isShortOf(write.kind, seq))) return false
  write.includedSeq = seq
  return true
})

/**
 * Rejects a put for which there is no storage, one of too many of its user or address, the first
 * put of one new user too many, and one new channel too many; one for another user counts for the
 * caller alone. Deletes end what a put began, so they are never more.
 */
const checkQuotas = Effect.fnUntraced(function* <S, C extends Command, E, R>(
  write: Write<S, C, E, R>,
  { command, growth: given, moves }: Change<S, C>,
  state: S
) {
  const { kind, writer } = write
  if (!isPut(command)) return
  const growth = given ?? kind.growthOf(state, command)
  yield* demandRoom(growth)
  const rates = yield* RequestRates
  const { id, user } = writer.caller!
  if (write.counted !== "nothing") {
    // After a conflict a subscription may be another user's.
    if (moves && write.counted === "change") {
      yield* rates.ofMove(user)
      write.counted = "move"
    }
    return
  }
  if (user !== writer.user!.user) {
    // An operator may give many subscriptions back at once.
    if (command.type === "registration.put") yield* rates.ofMember(user)
    write.counted = "change"
    return
  }
  const hasNoList = kind.places[0].bucket === "subscriptions"
  const isNewUser = kind.seqOf(state) === 0 && (yield* isNewcomer(writer, hasNoList))
  const { type: _, ...body } = command
  yield* rates.ofChange({
    user,
    address: writer.request.address,
    bytes: bytesOfChange(kind.subject, { ...body, user: id }),
    isNewUser,
    isNewChannel: growth === "channel",
    isMove: moves === true
  })
  write.counted = moves ? "move" : "change"
})

const isPut = ({ type }: Command): boolean =>
  type.endsWith(".put") || type === "subscription.renewable"

/** Appends a command that expects a sequence. Its own sequence, or undefined after a conflict. */
const append = <S, C extends Command, E, R>(
  { kind: { subject }, writer }: Write<S, C, E, R>,
  { by = anotherCaller(writer), command }: Change<S, C>,
  expect: number,
  isStored: boolean
) => {
  const { type, ...body } = command
  const headers = by === undefined ? {} : { headers: byHeaders(by) }
  // Names the subject where 0 does not mean that there is no entry.
  const expectation = expect === 0 && isStored ? { expect, expectOn: subject } : { expect }
  const message = { subject, type, body, ...expectation, ...headers }
  return Effect.flatMap(EventLog, (log) =>
    log.append("log", message as unknown as Append<C["type"]>)
  ).pipe(
    Effect.map(({ seq }) => seq),
    Effect.catchTag("AppendConflict", () => Effect.succeed(undefined))
  )
}

/** The id of the caller, if it writes for another user. */
const anotherCaller = ({ caller, user }: Writer) =>
  caller !== undefined && caller.user !== user!.user ? caller.id : undefined

/**
 * Waits until the projection has applied the command that was stored at `seq`, and fails if it
 * rejected a put.
 */
const awaitApplied = Effect.fnUntraced(function* (
  places: readonly [Place, ...Place[]],
  command: Command,
  seq: number,
  refusal: ErrorCode
) {
  const { refused = seq, short = [] } = yield* (yield* Watermark).reached(seq, appliedMillis)
  for (const place of isPut(command) ? places : places.slice(0, 1))
    if (short.includes(place.bucket)) yield* demandStored(place, seq)
  if (!isPut(command) || refused < seq) return
  const rejected = yield* (yield* EventLog).last("log", subjects.rejected(seq))
  if (rejected === undefined) return
  const { message } = rejected
  const isFull = message.type === "command.rejected" && message.reason === sharedIsFull
  return yield* refuse(isFull ? "no-room" : refusal)
})

/** Refuses with 507 when a full bucket did not take what the command at `seq` changed. */
const demandStored = Effect.fnUntraced(function* ({ bucket, key }: Place, seq: number) {
  if (((yield* valueAt(bucket, key))?.seq ?? 0) >= seq) return
  yield* (yield* Space).refused(bucketStream(bucket))
  return yield* refuse("no-room")
})

/**
 * The sequence of the last command on the subject, once the bucket shows what it changed; 0: LOG
 * has none; undefined: the bucket has no room.
 */
const lastApplied = Effect.fnUntraced(function* <S, C extends Command>(kind: Kind<S, C>) {
  const seq = yield* lastSeq(kind.subject)
  return (yield* isShortOf(kind, seq)) ? undefined : seq
})

/** The sequence of the last message of LOG on a subject; 0: there is none. */
export const lastSeq = Effect.fnUntraced(function* (subject: string) {
  return (yield* (yield* EventLog).last("log", subject))?.seq ?? 0
})

/** Waits until a command is applied. Returns whether the bucket has no room for what it changed. */
const isShortOf = Effect.fnUntraced(function* (
  { places: [{ bucket }] }: Pick<Kind<never, never>, "places">,
  seq: number
) {
  const { short = [] } = yield* (yield* Watermark).reached(seq, appliedMillis)
  return short.includes(bucket)
})
