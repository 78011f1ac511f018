// How a command enters LOG: decide on the state as the leader has it, append expecting exactly that state, wait until the
// projection shows it, answer from the folded state. Another write in between means: look again and decide again.
import { Clock, Effect } from "effect"
import { Settings } from "#config"
import {
  evolveRegistration,
  type Registration,
  type RegistrationCommand
} from "#domain/registration.ts"
import {
  emptyList,
  evolveList,
  type SubscriptionCommand,
  type SubscriptionList
} from "#domain/subscription.ts"
import { Space } from "#nats/admin/space.ts"
import type { NatsUnavailable } from "#nats/connection/errors.ts"
import { Watermark } from "#nats/follower/watermark.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import type { BucketOf } from "#nats/kv/values.ts"
import { type Append, EventLog } from "#nats/stream/event-log.ts"
import { bucketStream, type EntryKey, keys } from "#streams/buckets.ts"
import { subjects } from "#streams/subjects.ts"
import type { ChannelToken } from "#streams/tokens.ts"
import { refuse } from "./http/errors.ts"
import type { ApiResponse, Call, Refused } from "./http/request.ts"
import { admitNewcomer } from "./quotas/holdings.ts"
import { demandRoom, type Growth } from "./quotas/room.ts"

/** An answer at once, or a command and the answer that follows from the state it leads to. */
export type Decision<S, C> =
  | { readonly _tag: "Unchanged"; readonly response: ApiResponse }
  | {
      readonly _tag: "Change"
      readonly command: C
      readonly response: (state: S) => ApiResponse
      /** Whether the command, stored at `seq`, was obeyed where it is folded. */
      readonly confirm?: (seq: number) => Effect.Effect<void, Refused | NatsUnavailable, Buckets>
    }

/** Of a call: who asks, and from where. */
type Writer = Pick<Call, "request" | "caller">

/** A user's writes from many sessions meet on one subject: each round one of them wins, so the time bounds the rounds. */
const conflictBudgetMillis = 5_000
const lookAgainMillis = 10

type PlaceKey = EntryKey<
  "subscriptions" | "registration" | "registrationCounts" | "channelRegistrations"
>

interface Place {
  readonly bucket: BucketOf<PlaceKey>
  readonly key: PlaceKey
}

interface Kind<S, C extends { readonly type: string }> {
  /** Where its state is, and where else a put is noted. */
  readonly places: readonly [Place, ...Place[]]
  /** What its puts make grow. */
  readonly growth: Growth
  readonly subject: string
  readonly seqOf: (state: S) => number
  readonly read: Effect.Effect<S, NatsUnavailable, Buckets>
  readonly evolve: (state: S, command: C, seq: number) => S
}

const valueAt = Effect.fnUntraced(function* <K extends string>(bucket: BucketOf<K>, key: K) {
  return (yield* (yield* Buckets).get(bucket, key))?.value
})

/** Refuses with 507 when a bucket had no room for what a command changed; that is tried again. */
const demandStored = Effect.fnUntraced(function* ({ bucket, key }: Place, seq: number) {
  if (((yield* valueAt(bucket, key))?.seq ?? 0) >= seq) return
  yield* (yield* Space).refused(bucketStream(bucket))
  return yield* refuse("noRoom")
})

const change = Effect.fnUntraced(function* <
  S,
  C extends SubscriptionCommand | RegistrationCommand,
  E,
  R
>(
  kind: Kind<S, C>,
  writer: Writer,
  decide: (state: S, now: number) => Effect.Effect<Decision<S, C>, E, R>
) {
  const log = yield* EventLog
  const watermark = yield* Watermark
  const { appliedTimeoutMillis } = yield* Settings
  const deadline = (yield* Clock.currentTimeMillis) + conflictBudgetMillis
  /** Sequence that another write overtook: a state as old as that need not be decided on again. */
  let overtaken = -1
  let isAdmitted = false
  while (true) {
    const state = yield* kind.read
    const now = yield* Clock.currentTimeMillis
    if (kind.seqOf(state) > overtaken) {
      const decision = yield* decide(state, now)
      if (decision._tag === "Unchanged") return decision.response
      const { type, ...body } = decision.command
      const isPut = type.endsWith(".put/1")
      if (isPut) yield* demandRoom(kind.growth)
      // Counted once, however often another write comes in between.
      if (isPut && !isAdmitted && kind.seqOf(state) === 0) yield* admitNewcomer(writer)
      isAdmitted = true
      const append = {
        subject: kind.subject,
        type,
        body,
        expect: kind.seqOf(state)
      } as unknown as Append<C["type"]>
      const appended = yield* Effect.result(log.append("log", append))
      if (appended._tag === "Success") {
        const { seq } = appended.success
        const { short = [] } = yield* watermark.reached(seq, appliedTimeoutMillis)
        for (const place of isPut ? kind.places : kind.places.slice(0, 1))
          if (short.includes(place.bucket)) yield* demandStored(place, seq)
        if (decision.confirm !== undefined) yield* decision.confirm(seq)
        return decision.response(kind.evolve(state, decision.command, seq))
      }
      if (appended.failure._tag === "NatsUnavailable") return yield* appended.failure
      overtaken = kind.seqOf(state)
    }
    if (now >= deadline) {
      // The state stays as it was while its bucket has no room for the next.
      yield* demandRoom(kind.growth)
      return yield* refuse("conflict")
    }
    yield* Effect.sleep(lookAgainMillis)
  }
})

/** Changes a user's subscriptions. */
export const changeList = <E = never, R = never>(
  writer: Writer,
  decide: (
    list: SubscriptionList,
    now: number
  ) => Effect.Effect<Decision<SubscriptionList, SubscriptionCommand>, E | Refused, R>
) => {
  const { user } = writer.caller!
  const key = keys.subscriptions(user)
  return change<SubscriptionList, SubscriptionCommand, E | Refused, R>(
    {
      places: [{ bucket: "subscriptions", key }],
      growth: "subscription",
      subject: subjects.subscription(user),
      seqOf: ({ seq }) => seq,
      read: Effect.map(valueAt("subscriptions", key), (list) => list ?? emptyList),
      evolve: evolveList
    },
    writer,
    decide
  )
}

/** Changes a user's place in a channel. */
export const changeRegistration = <E, R>(
  channel: ChannelToken,
  writer: Writer,
  decide: (
    registration: Registration | undefined,
    now: number
  ) => Effect.Effect<Decision<Registration | undefined, RegistrationCommand>, E, R>
) => {
  const { user } = writer.caller!
  const key = keys.registration(channel, user)
  return change<Registration | undefined, RegistrationCommand, E, R>(
    {
      places: [
        { bucket: "registrations", key },
        { bucket: "channels", key: keys.channelRegistrations(channel) },
        { bucket: "registrations", key: keys.registrationCounts(user) }
      ],
      growth: "registration",
      subject: subjects.registration(channel, user),
      seqOf: (registration) => registration?.seq ?? 0,
      read: valueAt("registrations", key),
      evolve: evolveRegistration
    },
    writer,
    decide
  )
}
