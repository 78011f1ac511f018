// `bellcast restore --from TIME`: puts back subscriptions that push services called gone, and sends again to suspended ones, when that was
// wrong. What its user removed stays removed, and who has subscribed again is left alone. Never shows an endpoint or a key.
import { Clock, Console, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { settings } from "#config"
import { goneReasons } from "#domain/reason.ts"
import {
  causeOf,
  emptyList,
  isSameBrowser,
  nextTimestamp,
  type StoredSubscription,
  type SubscriptionList,
  type SubscriptionMatched,
  type SubscriptionPut
} from "#domain/subscription.ts"
import type { NatsUnavailable } from "#nats/connection/errors.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { everySetting } from "#settings/every-setting.ts"
import { keys } from "#streams/buckets.ts"
import { filters, parseSubscription, subjects } from "#streams/subjects.ts"
import type { UserToken } from "#streams/tokens.ts"
import { printable } from "#telemetry/printable.ts"
import { natsFlags, onNats, VerbFailed } from "./nats/nats.ts"

export interface RestoreOptions {
  /** Milliseconds since the epoch: when the removal was recorded, the first included, the last not. */
  readonly from: number
  readonly to: number
  /** Only subscriptions at these push services; none: all. */
  readonly hosts: ReadonlyArray<string>
  /** Only those removed for these causes, or `suspended`; none: all. */
  readonly causes: ReadonlyArray<string>
  readonly dryRun: boolean
  readonly subscriptionsPerUserMax: number
}

const suspended = "suspended"
const causes = [...goneReasons, suspended] as const

interface Removal {
  readonly id: string
  /** As the list calls it: sequence of the first put with these keys. */
  readonly generation: number
  /** Sequence of the last one. */
  readonly putSeq: number
  /** Why it was removed, or that it is {@link suspended}. */
  readonly cause: string
}

/** A removal and the put that it was of. */
interface Found extends Removal {
  readonly put: SubscriptionPut
}

/** How long the buckets may be behind LOG; longer, and nobody keeps them. */
const followMillis = 10_000
const lookAgainMillis = 50
/** Users at a time. Those of one user go one after the other: each expects the one before. */
const usersAtOnce = 16

/** What a push service's word removed, or strikes suspended, in the time range, and is so still; by user, with the last sequence of each. */
const findRemovals = Effect.fnUntraced(function* ({ causes, from, to }: RestoreOptions) {
  const log = yield* EventLog
  const standing = new Map<
    string,
    Pick<Removal, "generation" | "putSeq"> & Pick<StoredSubscription, "data" | "vapidKey">
  >()
  const removed = new Map<UserToken, Map<string, Removal>>()
  const lastSeq = new Map<UserToken, number>()
  const fold = ({ at, message, seq, subject }: Stored) => {
    const user = parseSubscription(subject)
    if (user === undefined) return
    lastSeq.set(user, seq)
    const drop = (id: string) => {
      standing.delete(`${user}.${id}`)
      removed.get(user)?.delete(id)
    }
    if (message.type === "subscription.put/1") {
      const { data, id, vapidKey } = message
      const former = standing.get(`${user}.${id}`)
      const generation =
        former !== undefined && isSameBrowser(former, message) ? former.generation : seq
      drop(id)
      standing.set(`${user}.${id}`, {
        generation,
        putSeq: seq,
        data,
        ...(vapidKey === undefined ? {} : { vapidKey })
      })
    }
    if (message.type === "subscription.delete/1") for (const { id } of message.removed) drop(id)
    const found = (removal: Removal) => {
      if (at < from || at >= to || (causes.length > 0 && !causes.includes(removal.cause))) return
      if (!removed.has(user)) removed.set(user, new Map())
      removed.get(user)!.set(removal.id, removal)
    }
    if (!("generation" in message)) return
    const { generation, id } = message as SubscriptionMatched
    const stored = standing.get(`${user}.${id}`)
    if (stored?.generation !== generation) return
    const { putSeq } = stored
    if (message.type === "subscription.matched/1")
      standing.set(`${user}.${id}`, { ...stored, vapidKey: message.vapidKey })
    if (message.type === "subscription.gone/1") {
      drop(id)
      found({ id, generation, putSeq, cause: causeOf(message) })
    }
    if (message.type === "subscription.suspended/1")
      found({ id, generation, putSeq, cause: suspended })
    if (message.type === "subscription.cleared/1") removed.get(user)?.delete(id)
  }
  yield* log.replay("log", [filters.subscriptions], (stored) => Effect.sync(() => fold(stored)))
  return [...removed].map(([user, each]) => ({
    user,
    removals: [...each.values()],
    seq: lastSeq.get(user)!
  }))
})

/** The user's list once it shows everything up to `seq`. */
const listAt = Effect.fnUntraced(function* (user: UserToken, seq: number) {
  const buckets = yield* Buckets
  const deadline = (yield* Clock.currentTimeMillis) + followMillis
  while (true) {
    const list = (yield* buckets.get("subscriptions", keys.subscriptions(user)))?.value ?? emptyList
    if (list.seq >= seq) return list
    if ((yield* Clock.currentTimeMillis) >= deadline) {
      return yield* new VerbFailed({
        message: "the buckets do not follow the log: restore needs a running service"
      })
    }
    yield* Effect.sleep(lookAgainMillis)
  }
})

export const restore = Effect.fn("Cli.restore")(function* (options: RestoreOptions) {
  const log = yield* EventLog
  const { dryRun, hosts, subscriptionsPerUserMax } = options
  const counts = { restored: 0, users: 0, full: 0, changed: 0, causes: new Map<string, number>() }
  const restored = ({ cause }: Removal) => {
    counts.restored += 1
    counts.causes.set(cause, (counts.causes.get(cause) ?? 0) + 1)
  }

  const isAt = ({ data }: SubscriptionPut) =>
    hosts.length === 0 || hosts.some((host) => URL.parse(data.endpoint)?.hostname === host)

  const withPut = Effect.fnUntraced(function* (
    removal: Removal
  ): Effect.fn.Return<ReadonlyArray<Found>, NatsUnavailable> {
    const message = (yield* log.at("log", removal.putSeq))?.message
    return message?.type === "subscription.put/1" && isAt(message)
      ? [{ ...removal, put: message }]
      : []
  })

  /** The message that undoes it; undefined: the user has as many subscriptions as may be. */
  const undoing = (
    { cause, generation, id, put: { data, user: name, vapidKey } }: Found,
    list: SubscriptionList,
    now: number
  ) => {
    if (cause === suspended)
      return {
        type: "subscription.cleared/1",
        body: { id, generation, by: "operator", at: now }
      } as const
    if (Object.keys(list.subscriptions).length >= subscriptionsPerUserMax) return undefined
    const key = vapidKey === undefined ? {} : { vapidKey }
    return {
      type: "subscription.put/1",
      body: { user: name, id, data, ...key, lastModified: nextTimestamp(list, now) }
    } as const
  }

  /** What the user does meanwhile wins: then nothing more is put back. */
  const restoreUser = Effect.fnUntraced(function* (
    user: UserToken,
    all: ReadonlyArray<Found>,
    lastSeq: number
  ) {
    let expect = lastSeq
    for (const [i, found] of all.entries()) {
      const message = undoing(found, yield* listAt(user, expect), yield* Clock.currentTimeMillis)
      if (message === undefined) {
        counts.full += 1
        continue
      }
      const append = {
        subject: subjects.subscription(user),
        ...message,
        expect,
        headers: { "Bellcast-By": "restore" }
      }
      const appended = yield* log
        .append("log", append)
        .pipe(Effect.catchTag("AppendConflict", () => Effect.void))
      if (appended === undefined) {
        counts.changed += all.length - i
        return
      }
      expect = appended.seq
      restored(found)
    }
  })

  const each = Effect.fnUntraced(function* ({
    removals,
    seq,
    user
  }: Effect.Success<ReturnType<typeof findRemovals>>[number]) {
    const all = (yield* Effect.forEach(removals, withPut)).flat()
    if (all.length === 0) return
    counts.users += 1
    if (dryRun) all.forEach(restored)
    else yield* restoreUser(user, all, seq)
  })
  yield* Effect.forEach(yield* findRemovals(options), each, {
    concurrency: usersAtOnce,
    discard: true
  })
  return counts
})

const flags = {
  from: Flag.Date("from").pipe(
    Flag.withDescription("Removed at this time or later, e.g. 2026-11-20T09:00:00Z")
  ),
  to: Flag.Date("to").pipe(Flag.withDescription("Removed before this time"), Flag.optional),
  cause: Flag.Literals("cause", causes).pipe(
    Flag.withDescription("Only those removed for this, or suspended; may be repeated"),
    Flag.atLeast(0)
  ),
  host: Flag.String("host").pipe(
    Flag.withDescription("Only those at this push service; may be repeated"),
    Flag.atLeast(0)
  ),
  dryRun: Flag.Boolean("dry-run").pipe(Flag.withDescription("Only count"), Flag.withDefault(false)),
  ...natsFlags
}

const limits = { subscriptionsPerUserMax: settings.subscriptionsPerUserMax }

/** The verb. */
export const restoreCommand = Command.make(
  "restore",
  flags,
  ({ cause, dryRun, from, host, to, ...nats }) =>
    Effect.gen(function* () {
      const { subscriptionsPerUserMax } = yield* everySetting(limits).pipe(
        Effect.mapError(({ message }) => new VerbFailed({ message }))
      )
      const range = {
        from: from.getTime(),
        to: Option.match(to, {
          onNone: () => Number.POSITIVE_INFINITY,
          onSome: (at) => at.getTime()
        })
      }
      if (range.to <= range.from)
        return yield* new VerbFailed({
          message: "--to must be later than --from: nothing lies between them"
        })
      const done = yield* restore({
        ...range,
        hosts: host,
        causes: cause,
        dryRun,
        subscriptionsPerUserMax
      })
      const { changed, full, restored, users } = done
      const byCause = [...done.causes].sort().map(([each, count]) => `${count} ${printable(each)}`)
      const detail = byCause.length === 0 ? "" : `: ${byCause.join(", ")}`
      yield* Console.log(
        `${restored} subscriptions of ${users} users ${dryRun ? "would be" : "were"} restored${detail}`
      )
      if (full > 0) yield* Console.log(`${full} were not: their users have as many as they may`)
      if (changed > 0)
        yield* Console.log(
          `${changed} were not: their users changed their subscriptions meanwhile; run it again`
        )
    }).pipe(onNats(nats))
).pipe(
  Command.withDescription("Put back subscriptions that were wrongly called gone, or suspended")
)
