// `bellcast restore --from TIME`: puts back subscriptions that push services called gone, when that was wrong. What its user removed stays
// removed, and who has subscribed again is left alone. Never shows an endpoint or a key.
import { Clock, Config, Console, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { emptyList, nextTimestamp, type SubscriptionList, type SubscriptionPut } from "#domain/subscription.ts"
import { Buckets } from "#log/bucket.ts"
import { Log, type Stored } from "#log/log.ts"
import { keys } from "#streams/buckets.ts"
import { filters, parseSubscription, subjects } from "#streams/subjects.ts"
import type { UserToken } from "#streams/tokens.ts"
import { natsFlags, onNats, VerbFailed } from "./nats.ts"

export interface RestoreOptions {
  /** Milliseconds since the epoch: when the removal was recorded, the first included, the last not. */
  readonly from: number
  readonly to: number
  /** Only subscriptions at these push services; none: all. */
  readonly hosts: ReadonlyArray<string>
  readonly dryRun: boolean
  readonly subscriptionsPerUserMax: number
}

interface Removal {
  readonly id: string
  /** Sequence of the put that stored what was removed. */
  readonly generation: number
}

/** How long the buckets may be behind LOG; longer, and nobody keeps them. */
const followMillis = 10_000
const lookAgainMillis = 50
/** Users at a time. Those of one user go one after the other: each expects the one before. */
const usersAtOnce = 16

/** What was removed by a push service's word in the time range and is removed still, by user, with the last sequence of each such user. */
const findRemovals = Effect.fnUntraced(function* ({ from, to }: RestoreOptions) {
  const log = yield* Log
  const standing = new Map<string, number>()
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
      drop(message.id)
      standing.set(`${user}.${message.id}`, seq)
    }
    if (message.type === "subscription.delete/1") for (const { id } of message.removed) drop(id)
    if (message.type === "subscription.gone/1" && standing.get(`${user}.${message.id}`) === message.generation) {
      const { generation, id } = message
      drop(id)
      if (at < from || at >= to) return
      if (!removed.has(user)) removed.set(user, new Map())
      removed.get(user)!.set(id, { id, generation })
    }
  }
  yield* log.replay("log", [filters.subscriptions], (stored) => Effect.sync(() => fold(stored)))
  return [...removed].map(([user, each]) => ({ user, removals: [...each.values()], seq: lastSeq.get(user)! }))
})

/** The user's list once it shows everything up to `seq`. */
const listAt = Effect.fnUntraced(function* (user: UserToken, seq: number) {
  const buckets = yield* Buckets
  const deadline = (yield* Clock.currentTimeMillis) + followMillis
  while (true) {
    const list = ((yield* buckets.get("subscriptions", keys.subscriptions(user)))?.value as SubscriptionList | undefined) ?? emptyList
    if (list.seq >= seq) return list
    if ((yield* Clock.currentTimeMillis) >= deadline) {
      return yield* new VerbFailed({ message: "the buckets do not follow the log: restore needs a running service" })
    }
    yield* Effect.sleep(lookAgainMillis)
  }
})

export const restore = Effect.fn("Cli.restore")(function* (options: RestoreOptions) {
  const log = yield* Log
  const { dryRun, hosts, subscriptionsPerUserMax } = options
  const counts = { restored: 0, users: 0, full: 0, changed: 0 }

  const isAt = ({ data }: SubscriptionPut) => hosts.length === 0 || hosts.some((host) => URL.parse(data.endpoint)?.hostname === host)

  const putOf = Effect.fnUntraced(function* ({ generation }: Removal) {
    const message = (yield* log.at("log", generation))?.message
    return message?.type === "subscription.put/1" && isAt(message) ? [message] : []
  })

  /** What the user does meanwhile wins: then nothing more is put back. */
  const restoreUser = Effect.fnUntraced(function* (user: UserToken, puts: ReadonlyArray<SubscriptionPut>, lastSeq: number) {
    let expect = lastSeq
    for (const [i, { data, id, user: name, vapidKey }] of puts.entries()) {
      const list = yield* listAt(user, expect)
      if (Object.keys(list.subscriptions).length >= subscriptionsPerUserMax) {
        counts.full += puts.length - i
        return
      }
      const lastModified = nextTimestamp(list, yield* Clock.currentTimeMillis)
      const body = { user: name, id, data, ...(vapidKey === undefined ? {} : { vapidKey }), lastModified }
      const headers = { "Bellcast-By": "restore" }
      const appended = yield* log
        .append("log", { subject: subjects.subscription(user), type: "subscription.put/1", body, expect, headers })
        .pipe(Effect.catchTag("AppendConflict", () => Effect.void))
      if (appended === undefined) {
        counts.changed += puts.length - i
        return
      }
      expect = appended.seq
      counts.restored += 1
    }
  })

  const each = Effect.fnUntraced(function* ({ removals, seq, user }: Effect.Success<ReturnType<typeof findRemovals>>[number]) {
    const puts = (yield* Effect.forEach(removals, putOf)).flat()
    if (puts.length === 0) return
    counts.users += 1
    if (dryRun) counts.restored += puts.length
    else yield* restoreUser(user, puts, seq)
  })
  yield* Effect.forEach(yield* findRemovals(options), each, { concurrency: usersAtOnce, discard: true })
  return counts
})

const flags = {
  from: Flag.Date("from").pipe(Flag.withDescription("Removed at this time or later, e.g. 2026-11-20T09:00:00Z")),
  to: Flag.Date("to").pipe(Flag.withDescription("Removed before this time"), Flag.optional),
  cause: Flag.Literals("cause", ["gone"]).pipe(Flag.withDescription("Why they were removed"), Flag.withDefault("gone" as const)),
  host: Flag.String("host").pipe(Flag.withDescription("Only those at this push service; may be repeated"), Flag.atLeast(0)),
  dryRun: Flag.Boolean("dry-run").pipe(Flag.withDescription("Only count"), Flag.withDefault(false)),
  ...natsFlags
}

/** The verb. */
export const restoreCommand = Command.make("restore", flags, ({ cause: _, dryRun, from, host, to, ...nats }) =>
  Effect.gen(function* () {
    const subscriptionsPerUserMax = yield* Config.Int("BELLCAST_SUBSCRIPTIONS_PER_USER_MAX").pipe(Config.withDefault(50), Effect.orDie)
    const range = { from: from.getTime(), to: Option.match(to, { onNone: () => Number.POSITIVE_INFINITY, onSome: (at) => at.getTime() }) }
    const { changed, full, restored, users } = yield* restore({ ...range, hosts: host, dryRun, subscriptionsPerUserMax })
    yield* Console.log(`${restored} subscriptions of ${users} users ${dryRun ? "would be" : "were"} restored`)
    if (full > 0) yield* Console.log(`${full} were not: their users have as many as they may`)
    if (changed > 0) yield* Console.log(`${changed} were not: their users changed their subscriptions meanwhile; run it again`)
  }).pipe(onNats(nats))
).pipe(Command.withDescription("Put back subscriptions that push services wrongly called gone"))
