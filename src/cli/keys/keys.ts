// `bellcast keys new|show|list|rotate|retire|forget-users`: the VAPID keys of a service. Beside its
// embedded server they are in the data folder and changed there. Beside an existing NATS they are
// settings, and the new settings are printed. A change takes effect at the next start.

import { join } from "node:path"
import * as Clock from "effect/Clock"
import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { addressIn, folderAt } from "#embedded/folder.ts"
import { adoptedKeys, forgetUseridSecret, oldestOf, usesOf } from "#secrets/adoption.ts"
import { changeKeys, freshPair, loadSecrets } from "#secrets/file.ts"
import { type KeySet, retired, rotated, usableKeys, usableKeysMax } from "#secrets/key-set.ts"
import { developmentSubject, keysAreSet, keysOfSettings, missingFaults } from "#secrets/secrets.ts"
import { natsFlags, onNats } from "../nats/on-nats.ts"
import { argument, jsonFlag, named, onOff, optional, ownSettings } from "../terminal/input.ts"
import {
  counted,
  failed,
  failedBy,
  note,
  noted,
  noteReadByOthers,
  printRows
} from "../terminal/output.ts"
import { addToFile, allLines, changedLines, newParts, textOf } from "./env-file.ts"

/** Prints fresh secrets. */
const printNew = Effect.gen(function* () {
  yield* Console.log(textOf(newParts()))
  yield* noteReadByOthers("these keys", "chmod 600 it, or use --env FILE")
})

const writeNew = Effect.fnUntraced(function* (file: string) {
  const added = yield* addToFile(file, newParts())
  yield* note(
    added.length === 0
      ? `${file} has every secret: nothing is changed`
      : `${file} has now ${added.join(", ")}; fill in what is empty`
  )
}, noted)

/** Ignores BELLCAST_NATS_URL, which an operator may have set already for the second process. */
const show = Effect.gen(function* () {
  const own = yield* ownSettings("dataDir", "useridHmacSecret", ...keySettings, "vapidSubject")
  if (keysAreSet({ ...own, natsUrl: Option.none() })) {
    return yield* failed(
      "VAPID keys are set here (BELLCAST_VAPID_...), so those of the data folder are not used"
    )
  }
  const file = yield* Effect.mapError(loadSecrets(own.dataDir), failedBy)
  const subject = Option.getOrElse(own.vapidSubject, () => developmentSubject)
  const secret = Option.match(own.useridHmacSecret, {
    onNone: () => file.useridHmacSecret,
    onSome: Redacted.value
  })
  const server = yield* Effect.promise(() => addressIn(folderAt(join(own.dataDir, "nats"))))
  const natsLine =
    server === undefined
      ? "# BELLCAST_NATS_URL stands here while the embedded server runs."
      : `BELLCAST_NATS_URL=${server.url}`
  const head = `# Secrets: those of ${own.dataDir}/secrets.json.`
  yield* Console.log([head, natsLine, allLines(file.vapidKeys, subject, secret)].join("\n"))
  yield* noteReadByOthers("these keys")
}).pipe(noted)

/** The keys, with their private halves. `folder`: of the file that has them, if it is a file. */
export const ownKeys = Effect.gen(function* () {
  const own = yield* ownSettings("dataDir", "natsUrl", ...keySettings)
  if (!keysAreSet(own)) {
    const { vapidKeys } = yield* Effect.mapError(loadSecrets(own.dataDir), failedBy)
    return { set: vapidKeys, folder: own.dataDir }
  }
  const { faults: wrong, keys, missing } = keysOfSettings(own, true)
  const faults = [...wrong, ...missingFaults(missing)]
  if (faults.length > 0)
    return yield* failed(`the settings of the service must be here, too:\n${faults.join("\n")}`)
  return { set: keys, folder: undefined }
})

/** The settings that have the keys. */
const keySettings = ["vapidFormerKeys", "vapidPrivateKey", "vapidPublicKey"] as const

/** The keys, and a function that changes them and prints what is left to do. */
const home = Effect.gen(function* () {
  const { folder, set } = yield* ownKeys
  const change = (edit: (set: KeySet) => KeySet) => {
    if (folder === undefined) {
      const head =
        "# New settings of every process. Restart those that deliver first, then the gateways."
      return Effect.andThen(
        Console.log([head, ...changedLines(set, edit(set))].join("\n")),
        noteReadByOthers("these keys")
      )
    }
    return changeKeys(folder, edit).pipe(
      Effect.mapError(failedBy),
      Effect.andThen(
        Console.log(
          `# ${folder}/secrets.json is changed. It takes effect at the service's next start.`
        )
      )
    )
  }
  return { set, change }
})

/** When each key was first offered, and how many subscriptions need it, from NATS. */
const inNats = Effect.fnUntraced(function* (set: KeySet) {
  const adopted = yield* adoptedKeys
  return { adopted, uses: yield* usesOf(oldestOf(adopted, set)) }
})

const rotate = Effect.gen(function* () {
  const { change, set } = yield* home
  if (usableKeys(set).length >= usableKeysMax) {
    return yield* failed(`there are ${usableKeysMax} keys: retire those that no subscription needs`)
  }
  const now = yield* Clock.currentTimeMillis
  yield* change((set) => rotated(set, freshPair(), now))
}).pipe(noted)

const list = Effect.fnUntraced(function* (json: boolean) {
  const { set } = yield* home
  const { adopted, uses } = yield* inNats(set)
  const adoptedAt = new Map(adopted.map(({ at, publicKey }) => [publicKey, at]))
  const lostKeys = [...new Set([...adoptedAt.keys(), ...uses.keys()])].filter(
    (key) => !set.some(({ publicKey }) => publicKey === key)
  )
  const missing = lostKeys.map((publicKey) => ({
    publicKey,
    state: "lost" as const,
    createdAt: undefined
  }))
  const rows = [...missing, ...set].map(({ createdAt, publicKey, state }) => {
    const at = createdAt ?? adoptedAt.get(publicKey)
    return {
      publicKey,
      state,
      created: at === undefined ? undefined : new Date(at).toISOString(),
      subscriptions: uses.get(publicKey) ?? 0
    }
  })
  yield* printRows(json, rows, {
    heading: ["PUBLIC KEY", "STATE", "CREATED", "SUBSCRIPTIONS"],
    cellsOf: (row) => [row.publicKey, row.state, row.created, row.subscriptions],
    none: "there is no key"
  })
})

const retire = Effect.fnUntraced(function* (publicKey: string, force: boolean) {
  const { change, set } = yield* home
  const key = set.find((each) => each.publicKey === publicKey)
  const { adopted, uses } = yield* inNats(set)
  const known =
    key !== undefined || uses.has(publicKey) || adopted.some((each) => each.publicKey === publicKey)
  const count = uses.get(publicKey) ?? 0
  if (!known) return yield* failed("there is no such key; `bellcast keys list` shows them")
  if (key?.state === "current")
    return yield* failed("this key is the current one: `bellcast keys rotate` first")
  if (key?.state === "retired") return yield* failed("this key is retired already")
  if (count > 0 && !force) {
    return yield* failed(
      `${counted(count, "subscription")} ${count === 1 ? "was" : "were"} made with this key; ` +
        "with --force each push to such a one ends as dead, for the reason key-retired"
    )
  }
  yield* change((now) => retired(now, publicKey, adopted[0]?.publicKey === publicKey))
})

const forgetUsers = Effect.fnUntraced(function* (force: boolean) {
  if (!force)
    return yield* failed("needs --force: no present user will find their subscriptions again")
  yield* forgetUseridSecret
  yield* Console.log("# The next start may come with another BELLCAST_USERID_HMAC_SECRET.")
})

const newCommand = Command.make(
  "new",
  {
    env: optional(
      named("env", "FILE"),
      "Write into this file, for its owner alone; what stands there stays as it is"
    )
  },
  ({ env }) => (Option.isNone(env) ? printNew : writeNew(env.value))
).pipe(
  Command.withDescription(
    "Make a VAPID key pair, a user id secret and a password for NATS, for an .env file"
  )
)

const showCommand = Command.make("show", {}, () => show).pipe(
  Command.withDescription(
    "Print the secrets beside the embedded server, with private keys, as lines for another process"
  )
)

const forgetFlags = {
  force: onOff("force", "Give up all users"),
  ...natsFlags
}

const retireFlags = {
  key: argument("key", "The public key"),
  force: onOff("force", "Give up the subscriptions made with it"),
  ...natsFlags
}

const verbs = [
  newCommand,
  showCommand,
  Command.make("list", { json: jsonFlag, ...natsFlags }, ({ json, ...nats }) =>
    list(json).pipe(onNats(nats, { startIt: true }))
  ).pipe(
    Command.withDescription(
      "Show the public keys, their states, and how many subscriptions were made with each"
    )
  ),
  Command.make("rotate", {}, () => rotate).pipe(
    Command.withDescription(
      "Make a new pair the current one; the former ones go on signing for their subscriptions"
    )
  ),
  Command.make("forget-users", forgetFlags, ({ force, ...nats }) =>
    forgetUsers(force).pipe(onNats(nats, { startIt: true }))
  ).pipe(
    Command.withDescription(
      "After the user id secret was lost: let the service start with a new one"
    )
  ),
  Command.make("retire", retireFlags, ({ force, key, ...nats }) =>
    retire(key, force).pipe(onNats(nats, { startIt: true }))
  ).pipe(Command.withDescription("Give up a former key that no subscription needs any more"))
] as const

/** The verb. */
export const keysCommand = Command.make("keys", {}, () => printNew).pipe(
  Command.withDescription("Make, show, rotate and retire the VAPID keys"),
  Command.withSubcommands(verbs)
)
