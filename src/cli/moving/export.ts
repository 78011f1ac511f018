// `bellcast export FILE`: writes one line for each live subscription, of all users or of one, in a
// form that `bellcast import` reads; with `--all`, everything that is stored about one user. The
// file is readable by its owner only: whoever has it and the private VAPID key can push to every
// browser.
import { link, lstat, open, rename, rm } from "node:fs/promises"
import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { isStandIn } from "#domain/subscription/command.ts"
import type { StoredSubscription, SubscriptionList } from "#domain/subscription/subscription.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { eachEntry } from "#nats/kv/entries.ts"
import type { Entry } from "#nats/kv/values.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { draftOf } from "#secrets/whole-file.ts"
import { type EntryKey, keys } from "#streams/buckets.ts"
import { decodeTokens, isUserToken, type UserToken } from "#streams/tokens.ts"
import { eachList, registeredChannels } from "#subscriptions/audience.ts"
import { printableJson } from "#telemetry/redaction.ts"
import { noteErased } from "../nats/erased.ts"
import { natsFlags, onNats } from "../nats/on-nats.ts"
import { userGiven, userGivenHelp } from "../nats/users.ts"
import { argument, named, onOff, optional } from "../terminal/input.ts"
import { counted, failed, note, noteReadByOthers, type VerbFailed } from "../terminal/output.ts"
import { everythingOf } from "./everything.ts"

/** Users whose lists are in memory. */
const usersAtOnce = 250
const readsAtOnce = 32

type Write = (text: string) => Effect.Effect<void, VerbFailed>

const isLive = ({ moved, suspended }: StoredSubscription): boolean =>
  moved === undefined && suspended === undefined

/** The id of the user of a list. Only LOG has it: keys of buckets are pseudonyms. */
const idOf = Effect.fnUntraced(function* ({ seq }: StoredSubscription) {
  const message = (yield* (yield* EventLog).at("log", seq))?.message
  return message?.type === "subscription.put" ? message.user : undefined
})

/** The lines of a user. That of a stand-in names no user: an import makes the same one again. */
const linesOf = Effect.fnUntraced(function* ({ key, value }: Entry<SubscriptionList>) {
  const live = Object.values(value.subscriptions).filter(isLive)
  if (live.length === 0) return []
  const id = yield* idOf(live[0]!)
  const user = id === undefined || isStandIn(id) ? {} : { user: id }
  const channels = decodeTokens(yield* registeredChannels(key as string as UserToken))
  return live.map(({ data: { channels: _, user: __, ...data }, vapidKey }) => {
    const made = vapidKey === undefined ? {} : { vapid_public_key: vapidKey }
    return JSON.stringify({ ...data, ...made, ...user, channels })
  })
})

const usersWithLists = Effect.fnUntraced(function* (only: UserToken | undefined) {
  if (only !== undefined) return [keys.subscriptions(only)]
  // A set: a list that changes meanwhile may come twice.
  const users = new Set<EntryKey<"subscriptions">>()
  yield* eachEntry("subscriptions", (key, value) => {
    if (isUserToken(key) && "subscriptions" in value && Object.keys(value.subscriptions).length > 0)
      users.add(keys.subscriptions(key))
  })
  return [...users]
})

/**
 * Passes the line of each live subscription to `write`, and returns how many there were. `only`: of
 * this user; undefined: of all.
 */
const exportAll = Effect.fnUntraced(function* (write: Write, only: UserToken | undefined) {
  const buckets = yield* Buckets
  const minRevision = yield* buckets.revision("subscriptions")
  const users = yield* usersWithLists(only)
  let count = 0
  for (let i = 0; i < users.length; i += usersAtOnce) {
    const lists: Array<Entry<SubscriptionList>> = []
    const some = users.slice(i, i + usersAtOnce)
    yield* eachList(buckets, some, minRevision, (entry) => void lists.push(entry))
    const lines = yield* Effect.forEach(lists, linesOf, { concurrency: readsAtOnce })
    count += lines.flat().length
    if (lines.flat().length > 0) yield* write(lines.flat().join("\n"))
  }
  return count
})

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code

/** Rejects with EEXIST if there is a file, or a link that leads nowhere. */
const demandNone = async (file: string) => {
  const found = await lstat(file).catch(() => undefined)
  if (found !== undefined) throw Object.assign(new Error("exists"), { code: "EEXIST" })
}

/** Names a file, and replaces none. Some file systems have no hard links. */
const giveName = async (draft: string, file: string) => {
  try {
    await link(draft, file)
  } catch (error) {
    if (codeOf(error) === "EEXIST") throw error
    await demandNone(file)
    await rename(draft, file)
  }
}

/** Writes lines, and returns how many. */
type Lines<E, R> = (write: Write) => Effect.Effect<number, E, R>

/** Writes a new file. It gets its name at the end, as a part would pass for the whole. */
const toFile = Effect.fnUntraced(function* <E, R>(file: string, lines: Lines<E, R>) {
  const attempt = <A>(task: () => Promise<A>) =>
    Effect.tryPromise({
      try: task,
      catch: (error) =>
        failed(
          codeOf(error) === "EEXIST"
            ? `${file} is there already: name another file`
            : `${file} cannot be written (${codeOf(error)})`
        )
    })
  yield* attempt(() => demandNone(file))
  const draft = draftOf(file)
  const handle = yield* attempt(() => open(draft, "wx", 0o600))
  const write: Write = (text) => attempt(() => handle.appendFile(`${text}\n`))
  return yield* lines(write).pipe(
    Effect.tap(() => attempt(() => handle.sync())),
    Effect.tap(() => attempt(() => giveName(draft, file))),
    Effect.ensuring(Effect.promise(() => rm(draft, { force: true }))),
    Effect.ensuring(Effect.promise(() => handle.close()))
  )
})

const toOutput = Effect.fnUntraced(function* <E, R>(terminal: boolean, lines: Lines<E, R>) {
  if (process.stdout.isTTY && !terminal)
    return yield* failed("endpoints and keys on a terminal stay in its history: name a file")
  yield* noteReadByOthers("these endpoints and keys", "chmod 600 it, or name a file instead of -")
  return yield* lines((text) => Console.log(text))
})

const flags = {
  file: argument("file", "A new file, readable by its owner only; -: standard output"),
  terminal: onOff("terminal", "Print to a terminal, too"),
  user: optional(named("user", "USER"), `Only those of this user: ${userGivenHelp}`),
  all: onOff("all", "With --user: each stored message and entry that names the user"),
  ...natsFlags
}

/** All that names a user. */
const everything = Effect.fnUntraced(function* (given: Option.Option<string>) {
  if (Option.isNone(given)) return yield* failed("--all is of one user: add --user USER")
  const user = yield* userGiven(given.value)
  if (user.id === user.user)
    return yield* failed("--all needs the user's id: grants and drafts have no pseudonym")
  return {
    only: user.user,
    lines: (write: Write) => everythingOf(user, (found) => write(printableJson(found))),
    said: (count: number) =>
      counted(count, "message or entry names", "messages and entries name") +
      " the user; endpoints and keys may be among them"
  }
})

const subscriptions = Effect.fnUntraced(function* (given: Option.Option<string>) {
  const only = Option.isSome(given) ? (yield* userGiven(given.value)).user : undefined
  return {
    only,
    lines: (write: Write) => exportAll(write, only),
    said: (count: number) =>
      `${counted(count, "subscription")}; they are of use only with their private VAPID keys`
  }
})

/** The verb. */
export const exportCommand = Command.make(
  "export",
  flags,
  ({ all, file, terminal, user, ...nats }) =>
    Effect.gen(function* () {
      const { lines, only, said } = yield* all ? everything(user) : subscriptions(user)
      const count = yield* file === "-" ? toOutput(terminal, lines) : toFile(file, lines)
      if (only !== undefined) yield* noteErased(only)
      yield* note(said(count))
    }).pipe(onNats(nats))
).pipe(
  Command.withDescription(
    "Write all live subscriptions, with their users and channels, or all about one user, to a file"
  )
)
