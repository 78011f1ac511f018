// `bellcast audit BROADCAST`: shows what became of every push of a broadcast, from the messages in
// WORK; with `--user`, of the pushes to a user. Never shows an endpoint or a key.
import * as Console from "effect/Console"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { csvOf } from "#basics/csv.ts"
import { type Push, pushOf } from "#broadcasts/pushes.ts"
import { endOf, stateFrom } from "#broadcasts/state.ts"
import { readRecipients } from "#broadcasts/whole-broadcast.ts"
import { gatewaySource, publisherOf, redrivenBy } from "#domain/broadcast.ts"
import { type BroadcastState, changeIn } from "#domain/broadcast-state.ts"
import { pushKey } from "#domain/outcome.ts"
import {
  countsOf,
  evolveProgress,
  type Progress,
  startProgress,
  waiting
} from "#domain/progress.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { filters, parseBroadcast, parseOfBroadcast, subjects } from "#streams/subjects.ts"
import { type ChannelToken, decodeToken, isDirect } from "#streams/tokens.ts"
import { printable, printableJson } from "#telemetry/redaction.ts"
import { auditUser } from "./audit-user.ts"
import { auditUserAt } from "./audit-user-at.ts"
import { broadcastArgument, commandOf } from "./nats/broadcasts.ts"
import { natsFlags, onNats } from "./nats/on-nats.ts"
import { atFlag, presentOr } from "./nats/past.ts"
import { userGivenHelp } from "./nats/users.ts"
import { limitFlag, named, onOff, optional, timeFlag } from "./terminal/input.ts"
import { counted, failed, table } from "./terminal/output.ts"

/** The last outcome of one push. `millis` is absent where only its dead letter is stored. */
type Shown = Omit<Push, "millis"> & Partial<Push>

interface Audit {
  readonly broadcast: number
  /** Absent: it goes to several channels, or to users. */
  readonly channel?: string
  readonly channels?: ReadonlyArray<string>
  /** How many users it names, and how many it excepts. */
  readonly users?: number
  readonly except?: number
  /** Milliseconds since the epoch. */
  readonly acceptedAt: number
  /** Absent: when it was accepted. */
  readonly startsAt?: number
  readonly source: string
  /** The publisher: the id of a user, or `nats:<source>`. */
  readonly publisher?: string
  /** The operator who sent it again, or `operator` for the command. */
  readonly by?: string
  readonly state: BroadcastState
  /** Why the broadcast was rejected. */
  readonly rejected?: string
  /** Who paused, resumed or cancelled it, and when. */
  readonly changes: Effect.Success<ReturnType<typeof stateChangesOf>>
  readonly looks: ReadonlyArray<Look>
  /** Absent until the broadcast is planned. */
  readonly progress?: Progress
  readonly pushes: ReadonlyArray<Shown>
}

export const audit = Effect.fn("Cli.audit")(function* (broadcast: number) {
  const log = yield* EventLog
  const stored = yield* commandOf(broadcast)
  const place = parseBroadcast(stored.subject)
  const rejection = (yield* log.last("log", subjects.rejected(broadcast)))?.message
  const rejected = rejection?.type === "broadcast.rejected" ? rejection.reason : undefined
  const { progress, pushes } = yield* readWork(broadcast)
  // After five weeks only the final counts in LOG are left.
  const fact =
    place === undefined || progress !== undefined
      ? undefined
      : yield* log.last("log", subjects.finished(place.channel, broadcast))
  const known = progress ?? (fact?.message.type === "broadcast.finished" ? fact.message : undefined)
  const publisher = place === undefined ? undefined : publisherOf(place.source, stored.header)
  const by = redrivenBy(place?.source ?? "", stored.header)
  const last = yield* log.last("log", subjects.state(broadcast))
  const end = endOf({ progress: known, rejected })
  const { schedule, startsAt, state } = stateFrom(stored, last, end)
  const result: Audit = {
    broadcast,
    ...(yield* addressOf(stored)),
    acceptedAt: stored.at,
    ...(schedule === undefined ? {} : { startsAt }),
    source: place?.source ?? "",
    ...(publisher === undefined ? {} : { publisher }),
    ...(by === undefined ? {} : { by }),
    state,
    ...(rejected === undefined ? {} : { rejected }),
    changes: yield* stateChangesOf(broadcast),
    looks: yield* looksAt(broadcast),
    ...(known === undefined ? {} : { progress: known }),
    pushes
  }
  return result
})

/** To whom a broadcast goes. */
const addressOf = Effect.fnUntraced(function* (stored: Stored) {
  const channel = parseBroadcast(stored.subject)?.channel
  if (!isDirect(channel))
    return { channel: channel === undefined ? stored.subject : nameOf(channel) }
  const to = yield* readRecipients(yield* EventLog, stored)
  if (to === undefined) return {}
  const { channels, except, users } = to
  return { channels: channels.map(nameOf), users: users.length, except: except.length }
})

const nameOf = (channel: ChannelToken): string => decodeToken(channel) ?? channel

/** Reads the messages of a broadcast in WORK. The last outcome of a push wins. */
const readWork = Effect.fnUntraced(function* (broadcast: number) {
  const log = yield* EventLog
  const pushes = new Map<string, Shown>()
  let progress: Progress | undefined
  const fold = ({ message, seq, subject }: Stored) => {
    if (message.type === "plan") progress ??= startProgress(message, seq)
    if (message.type === "outcome") {
      const of = parseOfBroadcast(subject)?.of ?? "shard"
      progress = progress && evolveProgress(progress, message, of, seq)
      for (const result of message.results)
        pushes.set(pushKey(result.user, result.subscription), pushOf(result))
    }
    // The dead letter is written before the outcome, which may still be missing.
    if (message.type === "dead" && !pushes.has(pushKey(message.user, message.subscription))) {
      const { attempts, reason, subscription, user } = message
      const status = message.status === undefined ? {} : { status: message.status }
      const push: Shown = { user, subscription, fate: "dead", ...status, reason, attempts }
      pushes.set(pushKey(user, subscription), push)
    }
  }
  const wanted = [
    filters.planOf(broadcast),
    filters.outcomesOf(broadcast),
    filters.deadLettersOf(broadcast)
  ]
  yield* log.scan("work", wanted, fold)
  return { progress, pushes: [...pushes.values()] }
})

/** All of them, the oldest first. */
const stateChangesOf = Effect.fnUntraced(function* (broadcast: number) {
  const changes: Array<Change> = []
  yield* (yield* EventLog).scan("log", [subjects.state(broadcast)], ({ at, message }) => {
    const found = changeIn(message)
    if (found === undefined) return
    changes.push({ change: found.type.replace(/^broadcast\./, ""), at, by: found.by })
  })
  return changes
})

/** When operators saw what a broadcast of another publisher says, the oldest first. */
const looksAt = Effect.fnUntraced(function* (broadcast: number) {
  const looks: Array<Look> = []
  yield* (yield* EventLog).scan("work", [filters.looksAtBroadcasts], ({ message }) => {
    if (message.type !== "look.broadcasts" || !message.broadcasts.includes(broadcast)) return
    looks.push({ by: message.by, at: message.at })
  })
  return looks
})

/** At most one of an operator and page of a list in an hour. */
interface Look {
  /** The id of the operator. */
  readonly by: string
  /** Milliseconds since the epoch. */
  readonly at: number
}

interface Change {
  /** `scheduled`, `changed`, `started`, `paused`, `resumed` or `cancelled`. */
  readonly change: string
  /** When NATS stored it: milliseconds since the epoch. */
  readonly at: number
  /** The id of a user, or a word for what made it: see `StateChange`. */
  readonly by: string
}

const text = (result: Audit): string => {
  // The last column is for broadcasts with variants.
  const columns = result.pushes.some(({ locale }) => locale !== undefined) ? 8 : 7
  const rows = result.pushes.map(
    ({ attempts, fate, locale, millis, reason, status, subscription, user }) => [
      ...[user, subscription.slice(0, 12)],
      ...[fate, status, reason, attempts, millis, locale].slice(0, columns - 2)
    ]
  )
  const heading = ["USER", "SUBSCRIPTION", "FATE", "STATUS", "REASON", "ATTEMPTS", "MS", "LOCALE"]
  return [
    ...headerOf(result),
    ...result.changes.map(changeLine),
    ...result.looks.map((look) => changeLine({ ...look, change: "looked at" })),
    ...(rows.length === 0 ? [] : [table(heading.slice(0, columns), rows)]),
    ...footerOf(result)
  ].join("\n")
}

/** A line for each push. The lines end as RFC 4180 wants it, the last by the terminal. */
const csvText = ({ pushes }: Audit): string =>
  csvOf(
    ["user", "subscription", "fate", "status", "reason", "attempts", "millis", "locale"],
    pushes.map(({ attempts, fate, locale, millis, reason, status, subscription, user }) => [
      ...[user, subscription, fate, status, printable(reason), attempts, millis, locale]
    ])
  ).replace(/\r\n$/, "\r")

const headerOf = (result: Audit): ReadonlyArray<string> => {
  const { acceptedAt, broadcast, progress, rejected, source, startsAt, state } = result
  const at = new Date(acceptedAt).toISOString()
  const start = startsAt === undefined ? "" : `, starts ${new Date(startsAt).toISOString()}`
  const who = source === gatewaySource ? result.publisher : result.by
  const by = who === undefined ? "" : ` by ${printable(who)}`
  const first =
    `broadcast ${broadcast} ${placeOf(result)}, ` +
    `accepted ${at} from ${printable(source)}${by}${start}`
  if (rejected !== undefined) return [first, `rejected: ${printable(rejected)}`]
  if (progress === undefined) return [first, state === "running" ? "not planned yet" : state]
  const { accepted, ...fates } = countsOf(progress)
  const sum = Object.entries(fates).map(([fate, count]) => `${count} ${fate}`)
  const { finished, people, shards, shardsDone } = progress
  const planned = people === undefined ? "" : `, planned for ${counted(people, "person", "people")}`
  const done = finished ? "" : `, ${shardsDone} of ${shards} shards done${planned}`
  return [first, `${accepted} accepted = ${sum.join(" + ")}; ${state}${done}`]
}

const placeOf = ({ channel, channels = [], except = 0, users = 0 }: Audit): string => {
  if (channel !== undefined) return `on channel ${printable(channel)}`
  const named = channels.length === 0 ? "" : ` (${channels.map(printable).join(", ")})`
  const excepted = except === 0 ? "" : `, except ${except}`
  const channelsText = `${counted(channels.length, "channel")}${named}`
  return `to ${channelsText} and ${counted(users, "user")}${excepted}`
}

/** Explains pushes that are counted but have no row. */
const footerOf = ({ progress, pushes }: Audit): ReadonlyArray<string> => {
  if (progress === undefined) return []
  const open = waiting(progress)
  if (open > 0) return [`${open} more waiting: no result yet`]
  return progress.accepted > pushes.length ? ["what became of each push is no longer stored"] : []
}

const changeLine = ({ at, by, change }: Change): string =>
  `${change} ${new Date(at).toISOString()} by ${printable(by)}`

/** With the names that the HTTP API has. */
const jsonOf = ({ acceptedAt, progress, startsAt, ...rest }: Audit) => ({
  ...rest,
  accepted_at: acceptedAt,
  ...(startsAt !== undefined && { starts_at: startsAt }),
  ...(progress !== undefined && jsonOfProgress(progress))
})

const jsonOfProgress = (progress: Progress) => {
  const { expiresAt, finished, people, shards, shardsDone, withoutSubscription } = progress
  return {
    ...{ expires_at: expiresAt, finished, shards, shards_done: shardsDone },
    ...(people !== undefined && { people }),
    ...countsOf(progress),
    ...(withoutSubscription !== undefined && { without_subscription: withoutSubscription })
  }
}

const flags = {
  broadcast: broadcastArgument.pipe(
    Argument.withDescription("Its id: the last part of Location, the sequence of the PubAck"),
    Argument.optional
  ),
  user: optional(named("user", "USER"), `Only the pushes to this user: ${userGivenHelp}`),
  channel: optional(named("channel", "CHANNEL"), "With --user: only broadcasts to this channel"),
  since: timeFlag("since", "With --user: only broadcasts accepted or started since").pipe(
    Flag.optional
  ),
  before: timeFlag("before", "With --user: only broadcasts accepted or started before").pipe(
    Flag.optional
  ),
  at: atFlag.pipe(
    Flag.withDescription("With --user: what the user should have got before this time, and why")
  ),
  limit: limitFlag,
  json: onOff("json", "Print one JSON object; with --user, JSON lines"),
  csv: onOff("csv", "Print the pushes as CSV, without anything about the broadcast"),
  ...natsFlags
}

const misplaced =
  "--channel, --since, --before and --at find broadcasts: give them without BROADCAST"

const printed = (result: Audit, as: { readonly csv: boolean; readonly json: boolean }): string => {
  if (as.csv) return csvText(result)
  return as.json ? printableJson(jsonOf(result)) : text(result)
}

const oneForm = "--csv prints the pushes of one broadcast: give BROADCAST, without --user or --json"

const atAlone = "--at goes with --user, and takes the place of --before"

const unnamed =
  "name a broadcast, or a user with --user; " +
  "`bellcast broadcast list --channel news --since 14:00` finds a broadcast"

/** The verb. */
export const auditCommand = Command.make(
  "audit",
  flags,
  ({ at, before, broadcast: named, channel, csv, json, limit, since, user, ...nats }) =>
    Effect.gen(function* () {
      const broadcast = Option.getOrUndefined(named)
      const isFiltered = [channel, since, before, at].some(Option.isSome<unknown>)
      if (broadcast !== undefined && isFiltered) return yield* failed(misplaced)
      if (csv && (json || broadcast === undefined || Option.isSome(user)))
        return yield* failed(oneForm)
      if (Option.isSome(at) && (Option.isSome(before) || Option.isNone(user)))
        return yield* failed(atAlone)
      if (Option.isSome(user)) {
        const { value } = user
        return yield* presentOr(
          at,
          auditUser(value, broadcast, { channel, since, before, limit }, json),
          (moment) => auditUserAt(value, moment, { channel, since, limit }, json)
        )
      }
      if (broadcast === undefined) return yield* failed(unnamed)
      const result = yield* audit(broadcast)
      yield* Console.log(printed(result, { csv, json }))
    }).pipe(onNats(nats))
).pipe(
  Command.withDescription("Show what became of every push of a broadcast, or of those to a user"),
  Command.withExamples([
    { command: "bellcast audit 5", description: "Every push of the broadcast 5" },
    {
      command: "bellcast audit --user openid:anna --channel news --since 14:00 --before 14:10",
      description: "Whether the broadcast of 14:05 reached Anna"
    },
    {
      command: "bellcast audit --user openid:anna --at 2026-06-01 --since 2026-05-01",
      description: "What Anna should have got in May, and why"
    }
  ])
)
