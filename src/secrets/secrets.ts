// The secrets of a process: from the settings or, beside the embedded server, created once in the
// data folder. Losing or changing them loses every subscriber. So nothing is created beside an
// existing NATS, and existing secrets are never replaced.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { isPublicName } from "#basics/public-name.ts"
import { Settings, type SettingsShape } from "#config"
import { loadOrCreateSecrets, SecretsFault, type StoredSecrets } from "./file.ts"
import { currentKey, type KeySet, keyFault, parseFormer, repeatedKey } from "./key-set.ts"

type KeySettings = Pick<SettingsShape, "vapidFormerKeys" | "vapidPrivateKey" | "vapidPublicKey">

/**
 * Whether the VAPID keys come from the settings: always beside an existing NATS; beside the
 * embedded server only if any are set.
 */
export const keysAreSet = ({
  natsUrl,
  vapidFormerKeys,
  vapidPrivateKey,
  vapidPublicKey
}: KeySettings & Pick<SettingsShape, "natsUrl">): boolean =>
  [natsUrl, vapidPublicKey, vapidPrivateKey, vapidFormerKeys].some((each) =>
    Option.isSome<unknown>(each)
  )

const inWords = new Intl.ListFormat("en-GB")

/** One sentence that names all missing settings. Empty: none is missing. */
export const missingFaults = (names: ReadonlyArray<string>): ReadonlyArray<string> =>
  names.length === 0
    ? []
    : [
        `${inWords.format(names)} must be set beside BELLCAST_NATS_URL, and beside other VAPID ` +
          "keys: secrets made here would differ from those of the other processes. For a new " +
          "service make them once: `bellcast keys new --env FILE`. If another process has an " +
          "embedded server, `bellcast keys show` prints its secrets."
      ]

/**
 * The keys in the settings, what is wrong with them, and which settings are missing.
 * `needsPrivate`: the process signs.
 */
export const keysOfSettings = (
  { vapidFormerKeys, vapidPrivateKey, vapidPublicKey }: KeySettings,
  needsPrivate: boolean
): {
  readonly keys: KeySet
  readonly faults: ReadonlyArray<string>
  readonly missing: ReadonlyArray<string>
} => {
  const former = parseFormer(
    Option.match(vapidFormerKeys, { onNone: () => "", onSome: Redacted.value }),
    needsPrivate
  )
  const faults = former.faults.map((fault) => `BELLCAST_VAPID_FORMER_KEYS, ${fault}`)
  const missing = Option.isNone(vapidPublicKey) ? ["BELLCAST_VAPID_PUBLIC_KEY"] : []
  if (needsPrivate && Option.isNone(vapidPrivateKey)) missing.push("BELLCAST_VAPID_PRIVATE_KEY")
  if (Option.isNone(vapidPublicKey) || missing.length > 0)
    return { keys: former.keys, faults, missing }
  const publicKey = vapidPublicKey.value
  const privateKey = needsPrivate ? Option.getOrUndefined(vapidPrivateKey) : undefined
  const current = { publicKey, privateKey, state: "current", createdAt: undefined } as const
  const keys: KeySet = [...former.keys, current]
  const fault = keyFault(current)
  const names =
    privateKey === undefined
      ? "BELLCAST_VAPID_PUBLIC_KEY"
      : "BELLCAST_VAPID_PUBLIC_KEY and BELLCAST_VAPID_PRIVATE_KEY"
  if (fault !== undefined) faults.push(`${names}: ${fault}`)
  const repeated = repeatedKey(keys)
  if (repeated !== undefined)
    faults.push(
      `BELLCAST_VAPID_FORMER_KEYS: the key ${repeated} is here twice, or is the current one`
    )
  return { keys, faults, missing }
}

const keysOfFile = ({ vapidKeys }: StoredSecrets, needsPrivate: boolean, dataDir: string) => {
  const faults = vapidKeys.flatMap((key, i) => {
    const fault = keyFault(key)
    return fault === undefined ? [] : [`key ${i + 1} in ${dataDir}/secrets.json: ${fault}`]
  })
  return {
    keys: needsPrivate ? vapidKeys : vapidKeys.map((key) => ({ ...key, privateKey: undefined })),
    faults,
    missing: []
  }
}

export class Secrets extends Context.Service<
  Secrets,
  {
    readonly useridHmacSecret: Redacted.Redacted<string>
    /** With private keys only in processes that run the role delivery. */
    readonly vapidKeys: KeySet
    /** The key that browsers subscribe with. */
    readonly vapidPublicKey: string
    /** Only in processes that run the role delivery. */
    readonly vapidSubject: string | undefined
  }
>()("bellcast/Secrets") {
  static readonly layer = Layer.effect(
    Secrets,
    Effect.gen(function* () {
      const settings = yield* Settings
      const embedded = Option.isNone(settings.natsUrl)
      const delivers = settings.roles.includes("delivery")
      const fromSettings = keysAreSet(settings)
      const file =
        embedded && !(fromSettings && Option.isSome(settings.useridHmacSecret))
          ? yield* loadOrCreateSecrets(settings.dataDir)
          : undefined
      const { keys, ...found } = fromSettings
        ? keysOfSettings(settings, delivers)
        : keysOfFile(file!, delivers, settings.dataDir)
      const faults = [...found.faults]
      const missing = [...found.missing]
      const secret = Option.getOrElse(settings.useridHmacSecret, () =>
        Redacted.make(file?.useridHmacSecret ?? "")
      )
      if (Redacted.value(secret) === "") missing.push("BELLCAST_USERID_HMAC_SECRET")
      const subject = Option.getOrElse(settings.vapidSubject, () =>
        embedded ? developmentSubject : undefined
      )
      const badSubject = subject === undefined ? undefined : subjectFault(subject)
      if (delivers && subject === undefined) missing.push("BELLCAST_VAPID_SUBJECT")
      if (delivers && badSubject !== undefined) faults.push(`BELLCAST_VAPID_SUBJECT ${badSubject}`)
      // http_ece, a dependency of web-push, then prints every key that it derives.
      if (process.env["ECE_KEYLOG"] === "1")
        faults.push("ECE_KEYLOG=1 prints encryption keys: remove it from the environment")
      faults.push(...missingFaults(missing))
      if (faults.length > 0) return yield* new SecretsFault({ message: faults.join("\n") })
      return Secrets.of({
        useridHmacSecret: secret,
        vapidKeys: keys,
        vapidPublicKey: currentKey(keys).publicKey,
        vapidSubject: delivers ? subject : undefined
      })
    })
  )
}

/**
 * The VAPID subject beside the embedded server, if none is set: where push services may write to
 * about our traffic (RFC 8292 section 2.1). Nobody reads mail to it.
 */
export const developmentSubject = "mailto:operator@example.com"

/** The characters of RFC 5322's dot-atom. A colon would be that of a second `mailto:`. */
const mailto = /^mailto:[\w.!#$%&'*+/=?^`{|}~-]+@([^\s<>@/:?#[\]\\]+)$/

/** The host of a subject as a URL parser writes it. */
const hostOf = (subject: string): string | undefined => {
  const domain = mailto.exec(subject)?.[1]
  const url = domain === undefined ? subject : `https://${domain}`
  return /^https:\/\/[^\s]+$/.test(url) ? URL.parse(url)?.hostname : undefined
}

/** Why a push service would refuse a subject. Apple is the strictest (403 BadJwtToken). */
export const subjectFault = (subject: string): string | undefined => {
  const host = hostOf(subject)
  if (host === undefined)
    return "must be mailto:name@domain or an https: URL, without spaces or brackets"
  return isPublicName(host)
    ? undefined
    : "must name a public domain, not an address or a name of a private network"
}

/** Domains that belong to nobody (RFC 2606). */
const examples = /(?:^|\.)(?:example\.(?:com|net|org)|example|test|invalid)$/i

/** Whether the subject was taken from an example, so that push services can write to nobody. */
export const isExample = (subject: string): boolean => examples.test(hostOf(subject) ?? "")

/**
 * Warns at the start of a process that sends: push services block senders whom they cannot write
 * to. No failure, as deliveries work until then. Undefined: the process sends nothing.
 */
export const warnOfExample = (subject: string | undefined): Effect.Effect<void> =>
  subject !== undefined && isExample(subject)
    ? Effect.logWarning(
        "push services can write to nobody about your pushes: BELLCAST_VAPID_SUBJECT is unset or " +
          "an example, set it to an address of yours (mailto:NAME@DOMAIN) or to an https: URL"
      )
    : Effect.void
