// Which secrets this NATS was used with before. LOG has every VAPID key that was ever offered to
// browsers, and a fingerprint of the user id secret; the bucket `subscriptions` has the key of each
// subscription. A service that lacks a key in use must not start: push services would refuse its
// pushes one by one, and the subscriptions be removed. With another user id secret every user gets
// a new id and finds none of their subscriptions.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { textHmac } from "#basics/hmac.ts"
import type { KeyAdopted } from "#domain/messages/records.ts"
import { eachEntry } from "#nats/kv/entries.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { filters, subjects } from "#streams/subjects.ts"
import { SecretsFault } from "./file.ts"
import { type KeySet, usableKeys } from "./key-set.ts"

/** Every key that was ever offered to browsers, the first one first. */
export const adoptedKeys = Effect.gen(function* () {
  const log = yield* EventLog
  const adopted: Array<KeyAdopted> = []
  yield* log.replay("log", [filters.adopted], ({ message }) => {
    if (message.type === "key.adopted") adopted.push(message)
  })
  return adopted
})

/**
 * Number of stored subscriptions for each key. Subscriptions without a noted key have `oldest`.
 * Subscriptions of a user whose list changes meanwhile may be counted twice.
 */
export const usesOf = Effect.fnUntraced(function* (oldest: string) {
  const uses = new Map<string, number>()
  yield* eachEntry("subscriptions", (_, value) => {
    if (!("subscriptions" in value)) return
    for (const { vapidKey = oldest } of Object.values(value.subscriptions)) {
      uses.set(vapidKey, (uses.get(vapidKey) ?? 0) + 1)
    }
  })
  return uses
})

/** The key of subscriptions without a noted key: the first that was offered. */
export const oldestOf = (adopted: ReadonlyArray<KeyAdopted>, set: KeySet): string =>
  (adopted[0] ?? set[0]!).publicKey

const keysMissing = (lost: ReadonlyArray<readonly [string, number]>): string =>
  [
    "VAPID keys are missing that subscriptions were made with; no other key can push to them:",
    ...lost.map(([publicKey, count]) => `${publicKey} (${count} subscriptions)`),
    "Restore them (BELLCAST_VAPID_FORMER_KEYS=<public key>:<private key>, or the former",
    "secrets.json), or give them up together with their subscriptions:",
    "`bellcast keys retire <public key> --force`."
  ].join("\n")

/** Fails when a key that stored subscriptions were made with is not in the set, retired or not. */
export const checkKeysInUse = Effect.fnUntraced(function* (set: KeySet) {
  const adopted = yield* adoptedKeys
  const gone = adopted.filter(({ publicKey }) => !set.some((key) => key.publicKey === publicKey))
  if (gone.length === 0) return
  // Only now, as this reads every subscription.
  const uses = yield* usesOf(oldestOf(adopted, set))
  const lost = gone.flatMap(({ publicKey }) =>
    uses.has(publicKey) ? [[publicKey, uses.get(publicKey)!] as const] : []
  )
  if (lost.length > 0) return yield* new SecretsFault({ message: keysMissing(lost) })
  yield* Effect.logInfo(
    "VAPID keys that were offered before are missing; no subscription needs them",
    { keys: gone.length }
  )
})

/** Records in LOG that these keys are offered from now on. Called before they are offered. */
export const adopt = Effect.fnUntraced(function* (set: KeySet) {
  const log = yield* EventLog
  const known = new Set((yield* adoptedKeys).map(({ publicKey }) => publicKey))
  for (const publicKey of usableKeys(set).filter((key) => !known.has(key))) {
    const body = { publicKey, at: yield* Clock.currentTimeMillis }
    yield* log.once("log", { subject: subjects.adopted(publicKey), type: "key.adopted", body })
  }
})

/** Identifies a secret without revealing more of it than a user id does. */
const fingerprintOf = (secret: Redacted.Redacted<string>): string =>
  textHmac(Redacted.value(secret))("bellcast userid secret", "base64url").slice(0, 22)

const otherSecret =
  "BELLCAST_USERID_HMAC_SECRET is not the one that this NATS was used with before: nobody would " +
  "find their subscriptions again. Set the former one (beside an embedded server it is in " +
  "secrets.json), or give up all users: `bellcast keys forget-users --force`."

const adopted = Effect.gen(function* () {
  const log = yield* EventLog
  const stored = yield* log.last("log", subjects.useridSecret)
  return {
    seq: stored?.seq ?? 0,
    fingerprint: stored?.message.type === "userid-secret.adopted" ? stored.message.fingerprint : ""
  }
})

const write = Effect.fnUntraced(function* (fingerprint: string, expect: number) {
  const log = yield* EventLog
  const body = { fingerprint, at: yield* Clock.currentTimeMillis }
  yield* log.append("log", {
    subject: subjects.useridSecret,
    type: "userid-secret.adopted",
    body,
    expect
  })
})

/** Records the secret in LOG at the first start. Fails with SecretsFault if another is recorded. */
export const adoptUseridSecret = Effect.fnUntraced(
  function* (secret: Redacted.Redacted<string>) {
    const fingerprint = fingerprintOf(secret)
    const known = yield* adopted
    if (known.fingerprint === fingerprint) return
    if (known.fingerprint !== "") return yield* new SecretsFault({ message: otherSecret })
    yield* write(fingerprint, known.seq)
  },
  Effect.retry({ times: 3, while: ({ _tag }) => _tag === "AppendConflict" })
)

/** Fails with SecretsFault if LOG has the fingerprint of another secret. */
export const checkUseridSecret = Effect.fnUntraced(function* (secret: Redacted.Redacted<string>) {
  const { fingerprint } = yield* adopted
  if (fingerprint !== "" && fingerprint !== fingerprintOf(secret))
    return yield* new SecretsFault({ message: otherSecret })
})

/** Lets the next start use another secret. All users of the former one are lost. */
export const forgetUseridSecret = Effect.flatMap(adopted, ({ seq }) => write("", seq))
