// `bellcast compact --before TIME --dry-run`: counts the messages of LOG that the service would
// delete if its history began at a time, and changes nothing. The service deletes by itself.
import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { endOfHistory, historyDaysMin } from "#domain/history.ts"
import { type Unneeded, unneededWith } from "#history/unneeded.ts"
import { streamState } from "#nats/admin/maintenance.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { readServerTime } from "#nats/watch/server-time.ts"
import { streams } from "#streams/index.ts"
import { subjects } from "#streams/subjects.ts"
import { printableJson } from "#telemetry/redaction.ts"
import { demandLog } from "./nats/log.ts"
import { natsFlags, onNats } from "./nats/on-nats.ts"
import { objectFlag, onOff, timeFlag } from "./terminal/input.ts"
import { failed, table } from "./terminal/output.ts"

/** Messages and bytes of one kind. */
interface Count {
  messages: number
  bytes: number
}
type What = Unneeded["what"]
const kinds = ["subscriptions", "registrations", "broadcasts", "rejections"] as const

interface Counts {
  readonly going: Readonly<Record<What, Count>>
  /** Messages of LOG from before the time. */
  old: number
}

const readAtOnce = 500

/** Of subject and body; nats-server adds 30 to 60 bytes, and headers. */
const bytesOf = ({ subject, text }: Stored): number => subject.length + Buffer.byteLength(text)

const noCounts = (): Counts => ({
  going: {
    subscriptions: { messages: 0, bytes: 0 },
    registrations: { messages: 0, bytes: 0 },
    broadcasts: { messages: 0, bytes: 0 },
    rejections: { messages: 0, bytes: 0 }
  },
  old: 0
})

/** Counts what would go. Reads without a consumer. */
export const countUnneeded = Effect.fnUntraced(function* (before: number) {
  const { firstSince, following } = yield* EventLog
  const last = (yield* streamState(streams.log))?.lastSeq ?? 0
  const upTo = ((yield* firstSince("log", before)) ?? last + 1) - 1
  const counts = noCounts()
  const counted = new Set<number>()
  const seen = new Set<string>()
  for (let from = 1; from <= upTo; ) {
    const found = yield* following("log", ">", { from, limit: readAtOnce })
    const old = found.filter(({ at, seq }) => seq <= upTo && at < before)
    counts.old += old.length
    for (const stored of old) {
      if (seen.has(stored.subject)) continue
      // All parts have one subject.
      if (stored.subject !== subjects.part) seen.add(stored.subject)
      yield* countWith(stored, before, counts, counted)
    }
    from = (found.at(-1)?.seq ?? upTo) + 1
  }
  return counts
})

/** Counts all that would go with a message. `counted`: what is counted, as if it had gone. */
const countWith = Effect.fnUntraced(function* (
  stored: Stored,
  before: number,
  counts: Counts,
  counted: Set<number>
) {
  for (let next: Stored | undefined = stored; next !== undefined; ) {
    const unneeded: Unneeded | undefined = yield* unneededWith(next, before, counted)
    if (unneeded === undefined) return
    addTo(counts, counted, unneeded)
    const again: number | undefined = unneeded.again
    next = again === undefined ? undefined : yield* (yield* EventLog).at("log", again)
  }
})

/** Counts each message once. */
const addTo = ({ going }: Counts, counted: Set<number>, { messages, what }: Unneeded): void => {
  for (const message of messages) {
    if (counted.has(message.seq)) continue
    counted.add(message.seq)
    going[what].messages++
    going[what].bytes += bytesOf(message)
  }
}

const textOf = ({ going, old }: Counts): string => {
  const rows = kinds.map((kind) => [kind, going[kind].messages, going[kind].bytes])
  const sum = kinds.reduce((total, kind) => total + going[kind].messages, 0)
  return `${table(["OF", "MESSAGES", "BYTES"], rows)}\n${sum} of ${old} old messages would go`
}

const flags = {
  before: timeFlag("before", "When the history would begin: at least 95 days ago"),
  dryRun: onOff("dry-run", "Needed: the service itself deletes, by BELLCAST_HISTORY_DAYS"),
  json: objectFlag,
  ...natsFlags
}

/** The verb. */
export const compactCommand = Command.make("compact", flags, ({ before, dryRun, json, ...nats }) =>
  Effect.gen(function* () {
    if (!dryRun)
      return yield* failed(
        "the service deletes old messages by itself, by BELLCAST_HISTORY_DAYS: " +
          "`--dry-run` shows what would go"
      )
    yield* demandLog
    const latest = endOfHistory((yield* readServerTime).serverMillis, historyDaysMin)
    const time = before.getTime()
    if (time > latest)
      return yield* failed(
        `the history has at least ${historyDaysMin} days: give ${new Date(latest).toISOString()} ` +
          "or earlier"
      )
    const counts = yield* countUnneeded(time)
    yield* Console.log(json ? printableJson(counts) : textOf(counts))
  }).pipe(onNats(nats))
).pipe(Command.withDescription("Show what would go from LOG if its history began at a time"))
