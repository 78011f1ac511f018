// `bellcast import FILE`: stores subscriptions that browsers made with the key pair of another
// service. Repeating it adds nothing. Never shows an endpoint or a key of a subscription.
import { createReadStream } from "node:fs"
import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { adoptedKeys } from "#secrets/adoption.ts"
import { ownKeys } from "../keys/keys.ts"
import { demandLog, demandRoom } from "../nats/log.ts"
import { natsFlags, onNats } from "../nats/on-nats.ts"
import { ownUsers } from "../nats/users.ts"
import { argument, named, onOff, optional, ownSettings, several } from "../terminal/input.ts"
import { failed, note } from "../terminal/output.ts"
import { check, type Line, linesOf, type Rules, tokensOf } from "./line.ts"
import { type Limits, type LineResult, storeOne } from "./store.ts"

/** Lines under way: each waits a few times for NATS and for the projector. */
const atOnce = 64
/** Lines after which the room of streams and buckets is looked at again. */
const roomEvery = 1_000
/** Lines after which the verb says how far it is. */
const notedEvery = 10_000

/** The keys that can sign here, and that a gateway has started with. */
const usableHere = Effect.gen(function* () {
  const { set } = yield* ownKeys
  const adopted = new Set((yield* adoptedKeys).map(({ publicKey }) => publicKey))
  const signing = set.filter(({ privateKey }) => privateKey !== undefined)
  return {
    signing: signing.map(({ publicKey }) => publicKey),
    usable: signing.flatMap(({ publicKey }) => (adopted.has(publicKey) ? [publicKey] : []))
  }
})

/** The keys that lines may name. Fails where this service cannot sign with that of the flag. */
const demandKey = Effect.fnUntraced(function* (given: string | undefined) {
  const { signing, usable } = yield* usableHere
  if (given === undefined || usable.includes(given)) return usable
  if (signing.includes(given))
    return yield* failed(
      "no gateway has started with this key yet: restart the processes that deliver, then the " +
        "gateways"
    )
  return yield* failed(
    "--vapid-public-key: this service cannot sign with this key. Put the pair into " +
      "BELLCAST_VAPID_FORMER_KEYS of every process (<public key>:<private key>) and run this " +
      "with the same settings. Without the private key nothing can be imported, and it cannot " +
      "be given here: no private key enters NATS"
  )
})

/** Lines by their result. */
type Counts = Record<LineResult | "lines" | "skipped" | "keyless" | "refused", number>

const demandAllRoom = Effect.all([
  demandRoom("subscriptions"),
  demandRoom("registrations"),
  demandRoom("channels")
])

const importLine = Effect.fnUntraced(function* (
  { number, text }: Line,
  { counts, dryRun, limits, rules }: Import
) {
  if (text?.trim() === "") return
  counts.lines += 1
  if (!dryRun && counts.lines % roomEvery === 0) yield* demandAllRoom
  if (counts.lines % notedEvery === 0) yield* note(`${counts.lines} lines ...`)
  const found = text === undefined ? { refused: "too long for a line" } : check(text, rules)
  if ("id" in found) {
    counts[yield* storeOne(found, limits, dryRun)] += 1
    return
  }
  if ("passed" in found) {
    counts[found.passed] += 1
    return
  }
  counts.refused += 1
  yield* note(`line ${number}: ${found.refused}`)
})

interface Import {
  readonly counts: Counts
  readonly rules: Rules
  readonly limits: Limits
  readonly dryRun: boolean
}

const importAll = Effect.fnUntraced(function* (file: string, task: Import) {
  const input = file === "-" ? process.stdin : createReadStream(file)
  const lines = linesOf(input.setEncoding("utf8"))
  const unreadable = (error: unknown) =>
    failed(`${file} cannot be read (${(error as NodeJS.ErrnoException).code})`)
  yield* Stream.fromAsyncIterable(lines, unreadable).pipe(
    Stream.mapEffect((line) => importLine(line, task), { concurrency: atOnce, unordered: true }),
    Stream.runDrain
  )
})

const words: Readonly<Record<Exclude<keyof Counts, "lines" | "stored">, string>> = {
  present: "were there already",
  ended: "were removed, taken by a user or gone since an earlier import",
  held: "belong to another user",
  full: "are of users who have as much as they may",
  skipped: "are no Web Push, or unsubscribed",
  keyless: "lack web_auth or web_p256",
  refused: "were refused"
}

/** The report: a line for each result. Lines without one were under way when something failed. */
const textOf = (counts: Counts, dryRun: boolean): string => {
  const head = `${counts.stored} of ${counts.lines} lines ${dryRun ? "would be" : "were"} stored`
  const others = Object.entries(words).flatMap(([name, text]) => {
    const count = counts[name as keyof typeof words]
    return count === 0 ? [] : [`${count} ${text}`]
  })
  const { lines, ...results } = counts
  const open = lines - Object.values(results).reduce((sum, count) => sum + count)
  if (open > 0) others.push(`${open} were not finished: repeat the import`)
  return [head, ...others].join("\n")
}

const flags = {
  file: argument("file", "One JSON object in each line; -: standard input"),
  channel: several(named("channel", "CHANNEL"), "Register every user on this channel"),
  key: optional(
    named("vapid-public-key", "KEY"),
    "The key that subscriptions were made with, where a line names none"
  ),
  policy: optional(
    named("policy", "POLICY"),
    "The policy of the users, where lines have their ids at the site"
  ),
  dryRun: onOff("dry-run", "Check and count, store nothing"),
  ...natsFlags
}

/** The verb. */
export const importCommand = Command.make(
  "import",
  flags,
  ({ channel, dryRun, file, key, policy, ...nats }) =>
    Effect.gen(function* () {
      const own = yield* ownSettings(
        "allowLoopbackEndpoints",
        "pushHosts",
        "registrationsPerUserMax",
        "subscriptionsPerUserMax",
        "subscriptionsPerUserPerHostMax"
      )
      const channels = [...channel]
      if (tokensOf(channels) === undefined) return yield* failed("--channel: no name of a channel")
      yield* demandLog
      const vapidKey = Option.getOrUndefined(key)
      const rules: Rules = {
        endpoints: { hosts: own.pushHosts, allowLoopback: own.allowLoopbackEndpoints },
        vapidKeys: yield* demandKey(vapidKey),
        vapidKey,
        policy: Option.getOrUndefined(policy),
        channels,
        channelsMax: own.registrationsPerUserMax,
        users: yield* ownUsers
      }
      if (!dryRun) yield* demandAllRoom
      const none = { stored: 0, present: 0, ended: 0, held: 0, full: 0 }
      const counts: Counts = { ...none, lines: 0, skipped: 0, keyless: 0, refused: 0 }
      yield* importAll(file, { counts, rules, limits: own, dryRun }).pipe(
        Effect.ensuring(Effect.suspend(() => Console.log(textOf(counts, dryRun))))
      )
      if (counts.refused > 0) return yield* failed(`${counts.refused} lines were refused`)
      if (counts.keyless > 0 && counts.keyless + counts.skipped === counts.lines)
        return yield* failed(
          "no line has keys of a browser: export with web_auth and web_p256 in extra_fields"
        )
    }).pipe(onNats(nats))
).pipe(
  Command.withDescription(
    "Store subscriptions of another service: only with its private VAPID key, which the settings " +
      "must have; Firebase's tokens carry no keys and cannot be imported"
  )
)
