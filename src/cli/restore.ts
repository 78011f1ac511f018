// `bellcast restore --from TIME`: puts back subscriptions that push services wrongly called gone,
// and resumes suspended ones. Subscriptions that their user removed or stored again since are left
// alone. Never shows an endpoint or a key.
import * as Clock from "effect/Clock"
import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { monotonicMillis } from "#clock/clocks.ts"
import { byHeaders } from "#domain/broadcast.ts"
import { goneReasons } from "#domain/reason.ts"
import type { SubscriptionPut } from "#domain/subscription/command.ts"
import type { SubscriptionQuota } from "#domain/subscription/subscription.ts"
import { emptyList, isBlank, type SubscriptionList } from "#domain/subscription/subscription.ts"
import { erasureOf } from "#history/past.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { keys } from "#streams/buckets.ts"
import { subjects } from "#streams/subjects.ts"
import type { UserToken } from "#streams/tokens.ts"
import {
  findRemovals,
  isStoredByAnother,
  type Range,
  type Removal,
  suspended,
  type UserRemovals,
  undoing
} from "#subscriptions/removals.ts"
import { printable } from "#telemetry/redaction.ts"
import { demandRoom, isRejected } from "./nats/log.ts"
import { natsFlags, onNats } from "./nats/on-nats.ts"
import { named, onOff, ownSettings, several, timeFlag } from "./terminal/input.ts"
import { counted, failed } from "./terminal/output.ts"

export interface RestoreOptions extends Range, SubscriptionQuota {
  /** Only subscriptions at these push services. Empty: all. */
  readonly hosts: ReadonlyArray<string>
  readonly dryRun: boolean
}

const causes = [...goneReasons, suspended] as const

/** The result of a run, or of a dry run. */
interface Counts {
  restored: number
  users: number
  /** Not restored: the user has as many subscriptions as allowed. */
  full: number
  /** Not restored: the user changed their subscriptions meanwhile. */
  changed: number
  /** Not restored: another user has stored the subscription since. */
  moved: number
  readonly causes: Map<string, number>
}

/** Longest time that the buckets may be behind LOG. After it, no projection runs. */
const followMillis = 10_000
const lookAgainMillis = 50
/** Users at a time. Messages of one user go one after the other: each expects the one before. */
const usersAtOnce = 16

const listOf = Effect.fnUntraced(function* (user: UserToken) {
  const entry = yield* (yield* Buckets).get("subscriptions", keys.subscriptions(user))
  return entry?.value ?? emptyList
})

/**
 * The user's subscriptions, once the bucket shows LOG up to `seq`; undefined: the user was erased.
 */
const listAt = Effect.fnUntraced(function* (user: UserToken, seq: number) {
  const deadline = (yield* monotonicMillis) + followMillis
  while (true) {
    const list = yield* listOf(user)
    if (list.seq >= seq) return list
    if (isBlank(list) && (yield* isErasedPast(user, seq))) return undefined
    if ((yield* monotonicMillis) >= deadline) {
      return yield* failed("the buckets do not follow LOG: restore needs a running service")
    }
    yield* Effect.sleep(lookAgainMillis)
  }
})

/**
 * Whether a user was erased, so that the list never shows a message. NATS may forbid to complete an
 * erasure: then LOG has those from before it for long, and the facts that came late.
 */
const isErasedPast = Effect.fnUntraced(function* (user: UserToken, seq: number) {
  const erasure = yield* erasureOf(user)
  if (erasure === undefined) return false
  if (erasure.seq > seq || !erasure.isDone) return true
  return (yield* (yield* EventLog).at("log", seq)) === undefined
})

const countRestored = (counts: Counts, { cause }: Removal): void => {
  counts.restored += 1
  counts.causes.set(cause, (counts.causes.get(cause) ?? 0) + 1)
}

const isAt = ({ data }: SubscriptionPut, hosts: ReadonlyArray<string>): boolean =>
  hosts.length === 0 || hosts.some((host) => URL.parse(data.endpoint)?.hostname === host)

/** Whether a subscription stays with another user. */
const isKept = (user: UserToken, list: SubscriptionList, found: Removal) =>
  found.cause === suspended ? Effect.succeed(false) : isStoredByAnother(user, list, found)

/** Counts what a restore would do, without the quotas. */
const countUser = Effect.fnUntraced(function* (
  user: UserToken,
  all: ReadonlyArray<Removal>,
  counts: Counts
) {
  const list = yield* listOf(user)
  for (const found of all)
    if (yield* isKept(user, list, found)) counts.moved += 1
    else countRestored(counts, found)
})

/** Restores one after the other. If the user writes meanwhile, the rest is left as it is. */
const restoreUser = Effect.fnUntraced(function* (
  user: UserToken,
  all: ReadonlyArray<Removal>,
  lastSeq: number,
  counts: Counts,
  quota: SubscriptionQuota
) {
  const log = yield* EventLog
  let expect = lastSeq
  for (const [i, found] of all.entries()) {
    if (found.cause !== suspended) yield* demandRoom("subscriptions")
    const list = yield* listAt(user, expect)
    if (list === undefined) {
      counts.changed += all.length - i
      return
    }
    if (yield* isKept(user, list, found)) {
      counts.moved += 1
      continue
    }
    const now = yield* Clock.currentTimeMillis
    const message = undoing(found, list, now, quota)
    if (message === undefined) {
      counts.full += 1
      continue
    }
    const headers = byHeaders("operator")
    const appended = yield* log
      .append("log", { subject: subjects.subscription(user), ...message, expect, headers })
      .pipe(Effect.catchTag("AppendConflict", () => Effect.void))
    if (appended === undefined) {
      counts.changed += all.length - i
      return
    }
    expect = appended.seq
    // Another user may have stored the subscription since its owner was read.
    if (found.cause !== suspended && (yield* isRejected(expect))) counts.moved += 1
    else countRestored(counts, found)
  }
})

/** Appends to LOG what undoes every removal found, and counts them. */
export const restore = Effect.fn("Cli.restore")(function* (
  options: RestoreOptions,
  counts: Counts
) {
  const each = Effect.fnUntraced(function* ({ removals, seq, user }: UserRemovals) {
    const all = removals.filter(({ put }) => isAt(put, options.hosts))
    if (all.length === 0) return
    counts.users += 1
    if (options.dryRun) yield* countUser(user, all, counts)
    else yield* restoreUser(user, all, seq, counts, options)
  })
  yield* Effect.forEach(yield* findRemovals(options), each, {
    concurrency: usersAtOnce,
    discard: true
  })
})

const flags = {
  from: timeFlag("from", "Removed at this time or later"),
  to: timeFlag("to", "Removed before this time").pipe(Flag.optional),
  cause: several(Flag.Literals("cause", causes), "Only those removed for this, or suspended"),
  host: several(named("host", "HOST"), "Only those at this push service"),
  dryRun: onOff("dry-run", "Only count"),
  ...natsFlags
}

/** The report: a line for each kind of change. */
const textOf = (counts: Counts, dryRun: boolean): string => {
  const { causes, changed, full, moved, restored, users } = counts
  const byCause = [...causes].sort().map(([each, count]) => `${count} ${printable(each)}`)
  const detail = byCause.length === 0 ? "" : `: ${byCause.join(", ")}`
  const were = (count: number) => (count === 1 ? "was" : "were")
  const wouldBe = dryRun ? "would be" : were(restored)
  const lines = [
    `${counted(restored, "subscription")} of ${counted(users, "user")} ${wouldBe} restored${detail}`
  ]
  const notMoved = dryRun ? "would not be" : `${were(moved)} not`
  if (moved > 0) lines.push(`${moved} ${notMoved}: other users have stored them since`)
  if (full > 0) lines.push(`${full} ${were(full)} not: their users have as many as they may`)
  if (changed > 0)
    lines.push(
      `${changed} ${were(changed)} not: their users changed their subscriptions meanwhile; ` +
        "run it again"
    )
  return lines.join("\n")
}

/** The verb. */
export const restoreCommand = Command.make(
  "restore",
  flags,
  ({ cause, dryRun, from, host, to, ...nats }) =>
    Effect.gen(function* () {
      const quota = yield* ownSettings("subscriptionsPerUserMax", "subscriptionsPerUserPerHostMax")
      const range = {
        from: from.getTime(),
        to: Option.match(to, {
          onNone: () => Number.POSITIVE_INFINITY,
          onSome: (at) => at.getTime()
        }),
        causes: cause
      }
      if (range.to <= range.from)
        return yield* failed("--to must be later than --from: nothing lies between them")
      const none = { restored: 0, users: 0, full: 0, changed: 0, moved: 0 }
      const counts: Counts = { ...none, causes: new Map() }
      yield* restore({ ...range, hosts: host, dryRun, ...quota }, counts).pipe(
        Effect.ensuring(Effect.suspend(() => Console.log(textOf(counts, dryRun))))
      )
    }).pipe(onNats(nats))
).pipe(
  Command.withDescription("Put back subscriptions wrongly called gone, and resume suspended ones")
)
