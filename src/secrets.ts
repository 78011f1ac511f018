// The secrets a process needs: from the environment or, beside the embedded server, created once and kept in the data folder. Losing or changing
// them strands every subscriber, so nothing is created beside an existing server, and what exists is never replaced.
import { createECDH, randomBytes } from "node:crypto"
import { mkdir, readFile, rename, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Context, Effect, Layer, Option, Redacted, Schema } from "effect"
import webpush from "web-push"
import { Settings } from "#config"

/** Start-up cannot go on; the message names the setting and says why. */
export class SecretsFault extends Schema.TaggedError<SecretsFault>()("SecretsFault", { message: Schema.String }) {}

/** What is kept in `<data folder>/secrets.json` (mode 0600). */
const Kept = Schema.Struct({ vapidPublicKey: Schema.String, vapidPrivateKey: Schema.String, useridHmacSecret: Schema.String })
type Kept = typeof Kept.Type

const developmentSubject = "mailto:operator@example.com"

/** Why a subject would be refused by a push service; Apple is the strictest (403 BadJwtToken). */
export const subjectFault = (subject: string): string | undefined => {
  const host =
    /^mailto:[^\s<>@]+@([^\s<>@]+)$/.exec(subject)?.[1] ?? (/^https:\/\/[^\s]+$/.test(subject) ? URL.parse(subject)?.hostname : undefined)
  if (host === undefined) return "must be mailto:name@domain or an https: URL, without spaces or brackets"
  return host.includes(".") && !host.endsWith(".local") && host !== "localhost" ? undefined : "must name a public domain"
}

/** Why a VAPID key pair cannot be used. */
export const keyPairFault = (publicKey: string, privateKey: string): string | undefined => {
  const [point, scalar] = [Buffer.from(publicKey, "base64url"), Buffer.from(privateKey, "base64url")]
  if (point.length !== 65 || point[0] !== 4) return "the public key must be 65 bytes in base64url, an uncompressed P-256 point"
  if (scalar.length !== 32) return "the private key must be 32 bytes in base64url"
  const ecdh = createECDH("prime256v1")
  try {
    ecdh.setPrivateKey(scalar)
  } catch {
    return "the private key is no P-256 key"
  }
  return ecdh.getPublicKey().equals(point) ? undefined : "the public key does not belong to the private key"
}

const create = async (dataDir: string, file: string): Promise<string> => {
  const { privateKey, publicKey } = webpush.generateVAPIDKeys()
  const kept: Kept = { vapidPublicKey: publicKey, vapidPrivateKey: privateKey, useridHmacSecret: randomBytes(32).toString("base64url") }
  await mkdir(dataDir, { recursive: true })
  const text = `${JSON.stringify(kept, null, 2)}\n`
  await writeFile(`${file}.new`, text, { mode: 0o600 })
  await rename(`${file}.new`, file)
  return text
}

const keep = (dataDir: string) => {
  const file = join(dataDir, "secrets.json")
  return Effect.tryPromise(async () => {
    const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return create(dataDir, file)
      throw error
    })
    return text
  }).pipe(
    Effect.flatMap(Schema.decodeEffect(Schema.fromJsonString(Kept))),
    Effect.mapError(
      () => new SecretsFault({ message: `${file} cannot be read. Restore it, or remove it and lose every subscription made with its key.` })
    )
  )
}

const required = <A>(name: string, value: Option.Option<A>) =>
  Effect.fromOption(value).pipe(
    Effect.mapError(
      () =>
        new SecretsFault({
          message: `${name} must be set beside BELLCAST_NATS_URL: a secret made up here would differ from that of the other processes.`
        })
    )
  )

export class Secrets extends Context.Service<
  Secrets,
  {
    readonly useridHmacSecret: Redacted.Redacted<string>
    readonly vapidPublicKey: string
    /** Only where the role delivery runs. */
    readonly vapid: { readonly privateKey: Redacted.Redacted<string>; readonly subject: string } | undefined
  }
>()("bellcast/Secrets") {
  static readonly layer = Layer.effect(
    Secrets,
    Effect.gen(function* () {
      const settings = yield* Settings
      const embedded = Option.isNone(settings.natsUrl)
      const given = Option.isSome(settings.useridHmacSecret) && Option.isSome(settings.vapidPrivateKey)
      const kept = embedded && !given ? Option.some(yield* keep(settings.dataDir)) : Option.none<Kept>()
      const or = <A>(option: Option.Option<A>, pick: (kept: Kept) => A) => Option.orElse(option, () => Option.map(kept, pick))
      const useridHmacSecret = yield* required(
        "BELLCAST_USERID_HMAC_SECRET",
        or(settings.useridHmacSecret, (each) => Redacted.make(each.useridHmacSecret))
      )
      const vapidPublicKey = yield* required(
        "BELLCAST_VAPID_PUBLIC_KEY",
        or(settings.vapidPublicKey, (each) => each.vapidPublicKey)
      )
      if (!settings.roles.includes("delivery")) return Secrets.of({ useridHmacSecret, vapidPublicKey, vapid: undefined })
      const privateKey = yield* required(
        "BELLCAST_VAPID_PRIVATE_KEY",
        or(settings.vapidPrivateKey, (each) => Redacted.make(each.vapidPrivateKey))
      )
      const subject = yield* required(
        "BELLCAST_VAPID_SUBJECT",
        Option.orElse(settings.vapidSubject, () => (embedded ? Option.some(developmentSubject) : Option.none()))
      )
      const keyFault = keyPairFault(vapidPublicKey, Redacted.value(privateKey))
      if (keyFault !== undefined)
        return yield* new SecretsFault({ message: `BELLCAST_VAPID_PUBLIC_KEY and BELLCAST_VAPID_PRIVATE_KEY: ${keyFault}` })
      const badSubject = subjectFault(subject)
      if (badSubject !== undefined) return yield* new SecretsFault({ message: `BELLCAST_VAPID_SUBJECT ${badSubject}` })
      return Secrets.of({ useridHmacSecret, vapidPublicKey, vapid: { privateKey, subject } })
    })
  )
}
