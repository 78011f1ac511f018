// Secrets as lines of an environment file: new ones, those that a file lacks, and what must be set
// after a change of keys. The lines hold private keys. Existing lines of a file never change.
import { randomBytes } from "node:crypto"
import { chmod, open, readFile } from "node:fs/promises"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { freshPair, freshUseridSecret } from "#secrets/file.ts"
import { currentKey, formatFormer, type KeySet } from "#secrets/key-set.ts"
import { createOnce } from "#secrets/whole-file.ts"
import { failed, VerbFailed } from "../terminal/output.ts"

/** Settings that belong together, under one comment. */
interface Part {
  readonly comment: string
  readonly values: Values
}

/** Settings by their names. */
type Values = Readonly<Record<string, string>>

/** New settings for a service beside an existing NATS. The operator completes the empty ones. */
export const newParts = (): ReadonlyArray<Part> => [
  {
    comment: "Made by `bellcast keys`. Without this pair every subscription made with it is lost.",
    values: pairOf(freshPair())
  },
  {
    comment: "The ids of users are made with it. Never change it.",
    values: { BELLCAST_USERID_HMAC_SECRET: freshUseridSecret() }
  },
  {
    comment: "mailto:... or https://...: where push services reach you. No start without it.",
    values: { BELLCAST_VAPID_SUBJECT: "" }
  },
  {
    comment: "Whose logins are believed (src/identity/README.md). No start without it.",
    values: { BELLCAST_AUTH_POLICIES: "" }
  },
  {
    comment: "Who may publish on every channel: <policy>:<id>, as GET /v1/ shows it.",
    values: { BELLCAST_CHANNEL_WRITE_PRINCIPALS: "" }
  },
  {
    comment: "The login of the NATS in compose.yaml; a NATS of your own has another.",
    values: { NATS_PASSWORD: randomBytes(32).toString("base64url") }
  }
]

/** The parts as lines of an environment file. */
export const textOf = (parts: ReadonlyArray<Part>): string =>
  parts.flatMap(({ comment, values }) => [`# ${comment}`, ...linesOf(values)]).join("\n")

/** Settings for another process beside the same NATS. Contain private keys. */
export const allLines = (set: KeySet, subject: string, useridSecret: string): string =>
  linesOf({
    ...currentOf(set),
    ...(set.length > 1 ? formerOf(set) : {}),
    BELLCAST_VAPID_SUBJECT: subject,
    BELLCAST_USERID_HMAC_SECRET: useridSecret
  }).join("\n")

/** Settings that differ between two sets of keys. */
export const changedLines = (before: KeySet, after: KeySet): ReadonlyArray<string> =>
  linesOf({
    ...(currentKey(after).publicKey === currentKey(before).publicKey ? {} : currentOf(after)),
    ...formerOf(after)
  })

const linesOf = (values: Values): ReadonlyArray<string> =>
  Object.entries(values).map(([name, value]) => `${name}=${value}`)

const pairOf = ({ privateKey, publicKey }: ReturnType<typeof freshPair>): Values => ({
  BELLCAST_VAPID_PUBLIC_KEY: publicKey,
  BELLCAST_VAPID_PRIVATE_KEY: Redacted.value(privateKey)
})

const currentOf = (set: KeySet): Values => {
  const { privateKey, publicKey } = currentKey(set)
  return pairOf({ publicKey, privateKey: privateKey! })
}

const formerOf = (set: KeySet): Values => ({
  BELLCAST_VAPID_FORMER_KEYS: formatFormer(set.filter(({ state }) => state !== "current"))
})

/** Adds to the file (mode 0600) the parts that it lacks. Returns the names of what was added. */
export const addToFile = (file: string, parts: ReadonlyArray<Part>) =>
  Effect.tryPromise({
    try: () => add(file, parts),
    catch: (error) =>
      error instanceof VerbFailed ? error : failed(`${file} cannot be written (${codeOf(error)})`)
  }).pipe(Effect.map((added) => added.flatMap(({ values }) => Object.keys(values))))

const add = async (file: string, parts: ReadonlyArray<Part>): Promise<ReadonlyArray<Part>> => {
  const found = await readIfThere(file)
  if (found === undefined) {
    const fresh = `${textOf(parts)}\n`
    await createOnce(file, fresh)
    // Another process may have made the file at the same moment.
    return (await readFile(file, "utf8")) === fresh ? parts : []
  }
  const { fault, missing } = missingParts(found, parts)
  if (fault !== undefined) throw failed(`${file}: ${fault}`)
  if (missing.length === 0) await chmod(file, 0o600)
  else await append(file, `${textOf(missing)}\n`, found)
  return missing
}

/**
 * The parts that a file lacks. A secret without a value counts as missing. `fault`: the file has
 * one half of a pair, which a new half would not fit.
 */
export const missingParts = (
  text: string,
  parts: ReadonlyArray<Part>
): { readonly missing: ReadonlyArray<Part>; readonly fault: string | undefined } => {
  const missing: Array<Part> = []
  for (const part of parts) {
    const entries = Object.entries(part.values)
    const absent = entries.filter(([name, value]) => {
      const there = valueIn(text, name)
      return there === undefined || (there === "" && value !== "")
    })
    if (absent.length === entries.length) missing.push(part)
    else if (absent.length > 0) {
      const names = absent.map(([name]) => name).join(", ")
      return { missing: [], fault: `${names} is missing beside the other half of the pair` }
    }
  }
  return { missing, fault: undefined }
}

/** The value of a name; of several lines the last. Undefined: there is no such line. */
const valueIn = (text: string, name: string): string | undefined =>
  [...text.matchAll(new RegExp(`^[ \\t]*(?:export[ \\t]+)?${name}[ \\t]*=(.*)$`, "gm"))]
    .at(-1)?.[1]
    ?.trim()

/** Makes the file readable by its owner only, then appends. */
const append = async (file: string, text: string, before: string): Promise<void> => {
  const handle = await open(file, "a")
  try {
    await handle.chmod(0o600)
    await handle.writeFile(before === "" || before.endsWith("\n") ? text : `\n${text}`)
    await handle.sync()
  } finally {
    await handle.close()
  }
}

const readIfThere = (file: string): Promise<string | undefined> =>
  readFile(file, "utf8").catch((error: unknown) => {
    if (codeOf(error) === "ENOENT") return undefined
    throw error
  })

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code
