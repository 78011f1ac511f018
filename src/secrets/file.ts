// <data folder>/secrets.json (mode 0600): the secrets of a service beside its embedded server. Made
// once, by exactly one process. From then on only `bellcast keys` changes the file, as a whole.
import { randomBytes } from "node:crypto"
import { mkdir, readFile, rename } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Redacted, Schema } from "effect"
import webpush from "web-push"
import type { KeySet } from "./key-set.ts"
import { createOnce, syncFolder, writeNew } from "./once.ts"

/** Start-up cannot go on, or a verb; the message names the setting or file and says why. */
export class SecretsFault extends Schema.TaggedError<SecretsFault>()("SecretsFault", {
  message: Schema.String
}) {}

/** Oldest first; the last one that has a private key is current, one without is retired. */
const Kept = Schema.Struct({
  v: Schema.Literal(2),
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
type Kept = typeof Kept.Type

/** Before there were sets: one pair. */
const KeptPair = Schema.Struct({
  vapidPublicKey: Schema.String,
  vapidPrivateKey: Schema.String,
  useridHmacSecret: Schema.String
})

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Union([Kept, KeptPair])))

/** What the file holds, as the service uses it. */
export interface KeptSecrets {
  readonly useridHmacSecret: string
  readonly vapidKeys: KeySet
}

const read = (text: string): KeptSecrets => {
  const kept = decode(text)
  const { useridHmacSecret } = kept
  const list: Kept["vapidKeys"] =
    "v" in kept
      ? kept.vapidKeys
      : [{ publicKey: kept.vapidPublicKey, privateKey: kept.vapidPrivateKey }]
  const current = list.findLastIndex(({ privateKey }) => privateKey !== undefined)
  if (current === -1) throw new Error("no key signs")
  const vapidKeys = list.map(({ createdAt, privateKey, publicKey }, i) => ({
    publicKey,
    privateKey: privateKey === undefined ? undefined : Redacted.make(privateKey),
    state:
      privateKey === undefined
        ? ("retired" as const)
        : i === current
          ? ("current" as const)
          : ("kept" as const),
    createdAt: createdAt === undefined ? undefined : Date.parse(createdAt)
  }))
  return { useridHmacSecret, vapidKeys }
}

const write = ({ useridHmacSecret, vapidKeys }: KeptSecrets): string => {
  const kept: Kept = {
    v: 2,
    useridHmacSecret,
    vapidKeys: vapidKeys.map(({ createdAt, privateKey, publicKey }) => ({
      publicKey,
      ...(privateKey === undefined ? {} : { privateKey: Redacted.value(privateKey) }),
      ...(createdAt === undefined ? {} : { createdAt: new Date(createdAt).toISOString() })
    }))
  }
  return `${JSON.stringify(kept, null, 2)}\n`
}

export const freshPair = () => {
  const { privateKey, publicKey } = webpush.generateVAPIDKeys()
  return { publicKey, privateKey: Redacted.make(privateKey) }
}

export const freshUseridSecret = (): string => randomBytes(32).toString("base64url")

const fileIn = (dataDir: string) => join(dataDir, "secrets.json")

/** Of several processes that start for the first time, one makes the file, and all read it. */
const create = async (dataDir: string): Promise<void> => {
  await mkdir(dataDir, { recursive: true })
  const vapidKeys: KeySet = [{ ...freshPair(), state: "current", createdAt: Date.now() }]
  await createOnce(fileIn(dataDir), write({ useridHmacSecret: freshUseridSecret(), vapidKeys }))
}

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code

const load = async (dataDir: string): Promise<KeptSecrets> =>
  read(await readFile(fileIn(dataDir), "utf8"))

// What went wrong inside may quote the file.
const faultOf = (dataDir: string, error: unknown): SecretsFault => {
  const file = fileIn(dataDir)
  const code = codeOf(error)
  if (code === undefined)
    return new SecretsFault({
      message: `${file} cannot be read. Restore it, or remove it and lose every subscription made with its keys.`
    })
  const message =
    code === "ENOENT"
      ? `there is no ${file}: it is made by the first start of a service beside its embedded server.`
      : `${file} cannot be used (${code}): BELLCAST_DATA_DIR must be a folder that this user may read and write.`
  return new SecretsFault({ message })
}

/** What is kept; made up now if there is nothing yet. What exists is never replaced. */
export const keep = (dataDir: string) =>
  Effect.tryPromise({
    try: () =>
      load(dataDir).catch(async (error: unknown) => {
        if (codeOf(error) !== "ENOENT") throw error
        await create(dataDir)
        return load(dataDir)
      }),
    catch: (error) => faultOf(dataDir, error)
  })

/** What is kept. */
export const kept = (dataDir: string) =>
  Effect.tryPromise({ try: () => load(dataDir), catch: (error) => faultOf(dataDir, error) })

/** Changes the keys that are kept. Of two at once, the second is refused. */
export const changeKeys = (dataDir: string, change: (set: KeySet) => KeySet) =>
  Effect.tryPromise({
    try: async () => {
      const next = `${fileIn(dataDir)}.new`
      let vapidKeys: KeySet = []
      // The new file is the lock: what it is made of is read when nobody else can change it.
      await writeNew(next, async () => {
        const before = await load(dataDir)
        vapidKeys = change(before.vapidKeys)
        return write({ ...before, vapidKeys })
      })
      await rename(next, fileIn(dataDir))
      await syncFolder(dataDir)
      return vapidKeys
    },
    catch: (error) =>
      codeOf(error) === "EEXIST"
        ? new SecretsFault({
            message: `${fileIn(dataDir)}.new is there: the keys are being changed. If nobody does, remove it.`
          })
        : faultOf(dataDir, error)
  })
