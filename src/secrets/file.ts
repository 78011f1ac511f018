// <data folder>/secrets.json (mode 0600): the secrets of a service beside its embedded server. One
// process makes the file, once. After that only `bellcast keys` replaces it.
import { randomBytes } from "node:crypto"
import { chown, mkdir, readFile, rename, stat } from "node:fs/promises"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import webpush from "web-push"
import type { KeySet, KeyState } from "./key-set.ts"
import { createOnce, syncFolder, writeNew } from "./whole-file.ts"

/** A start or a verb cannot go on. The message names the setting or file and says why. */
export class SecretsFault extends Schema.TaggedError<SecretsFault>()("SecretsFault", {
  message: Schema.String
}) {}

/**
 * The file. Keys oldest first: the last one with a private key is current, one without is retired.
 */
const SecretsFile = Schema.Struct({
  v: Schema.Literal(1),
  useridHmacSecret: Schema.String,
  vapidKeys: Schema.Array(
    Schema.Struct({
      publicKey: Schema.String,
      privateKey: Schema.optionalKey(Schema.String),
      /** ISO 8601. */
      createdAt: Schema.optionalKey(Schema.String)
    })
  )
})
type SecretsFile = typeof SecretsFile.Type

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(SecretsFile))

const stateOf = (privateKey: string | undefined, isCurrent: boolean): KeyState => {
  if (privateKey === undefined) return "retired"
  return isCurrent ? "current" : "former"
}

/** The content of the file, as the service uses it. */
export interface StoredSecrets {
  readonly useridHmacSecret: string
  readonly vapidKeys: KeySet
}

const read = (text: string): StoredSecrets => {
  const { useridHmacSecret, vapidKeys: list } = decode(text)
  const current = list.findLastIndex(({ privateKey }) => privateKey !== undefined)
  if (current === -1) throw new Error("no key signs")
  const vapidKeys = list.map(({ createdAt, privateKey, publicKey }, i) => ({
    publicKey,
    privateKey: privateKey === undefined ? undefined : Redacted.make(privateKey),
    state: stateOf(privateKey, i === current),
    createdAt: createdAt === undefined ? undefined : Date.parse(createdAt)
  }))
  return { useridHmacSecret, vapidKeys }
}

const write = ({ useridHmacSecret, vapidKeys }: StoredSecrets): string => {
  const content: SecretsFile = {
    v: 1,
    useridHmacSecret,
    vapidKeys: vapidKeys.map(({ createdAt, privateKey, publicKey }) => ({
      publicKey,
      ...(privateKey === undefined ? {} : { privateKey: Redacted.value(privateKey) }),
      ...(createdAt === undefined ? {} : { createdAt: new Date(createdAt).toISOString() })
    }))
  }
  return `${JSON.stringify(content, null, 2)}\n`
}

/** A new VAPID key pair. */
export const freshPair = () => {
  const { privateKey, publicKey } = webpush.generateVAPIDKeys()
  return { publicKey, privateKey: Redacted.make(privateKey) }
}

export const freshUseridSecret = (): string => randomBytes(32).toString("base64url")

const fileIn = (dataDir: string) => join(dataDir, "secrets.json")

/** Makes the file. Safe for several first starts at once: one makes the file, and all read it. */
const create = async (dataDir: string): Promise<void> => {
  await mkdir(dataDir, { recursive: true })
  const vapidKeys: KeySet = [{ ...freshPair(), state: "current", createdAt: Date.now() }]
  await createOnce(fileIn(dataDir), write({ useridHmacSecret: freshUseridSecret(), vapidKeys }))
}

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code

const load = async (dataDir: string): Promise<StoredSecrets> =>
  read(await readFile(fileIn(dataDir), "utf8"))

// The error itself is not shown: a decoding error quotes the file, which holds secrets.
const faultOf = (dataDir: string, error: unknown): SecretsFault => {
  const file = fileIn(dataDir)
  const code = codeOf(error)
  if (code === undefined)
    return new SecretsFault({
      message:
        `${file} cannot be read. Restore it, or remove it and lose every subscription made with ` +
        "its keys."
    })
  const message =
    code === "ENOENT"
      ? `there is no ${file}: the first start of a service beside its embedded server makes it.`
      : `${file} cannot be used (${code}): BELLCAST_DATA_DIR must be a folder that this user may ` +
        "read and write."
  return new SecretsFault({ message })
}

/** The secrets in the file, which is made if there is none. An existing file is never replaced. */
export const loadOrCreateSecrets = (dataDir: string) =>
  Effect.tryPromise({
    try: () =>
      load(dataDir).catch(async (error: unknown) => {
        if (codeOf(error) !== "ENOENT") throw error
        await create(dataDir)
        return load(dataDir)
      }),
    catch: (error) => faultOf(dataDir, error)
  })

/** The secrets in the file. Fails if there is none. */
export const loadSecrets = (dataDir: string) =>
  Effect.tryPromise({ try: () => load(dataDir), catch: (error) => faultOf(dataDir, error) })

/** Gives a file the owner of another one: root may change the keys of a service. */
const keepOwner = async (from: string, to: string) => {
  const { gid, uid } = await stat(from)
  if (uid !== process.getuid?.()) await chown(to, uid, gid)
}

/** Changes the keys in the file and returns them. Fails while another process does so. */
export const changeKeys = (dataDir: string, change: (set: KeySet) => KeySet) =>
  Effect.tryPromise({
    try: async () => {
      const next = `${fileIn(dataDir)}.new`
      let vapidKeys: KeySet = []
      // The new file is the lock: the keys are read while no other process can change them.
      await writeNew(next, async () => {
        const before = await load(dataDir)
        vapidKeys = change(before.vapidKeys)
        await keepOwner(fileIn(dataDir), next)
        return write({ ...before, vapidKeys })
      })
      await rename(next, fileIn(dataDir))
      await syncFolder(dataDir)
      return vapidKeys
    },
    catch: (error) =>
      codeOf(error) === "EEXIST"
        ? new SecretsFault({
            message:
              `${fileIn(dataDir)}.new exists: another command changes the keys. If none runs, ` +
              "remove the file."
          })
        : faultOf(dataDir, error)
  })
