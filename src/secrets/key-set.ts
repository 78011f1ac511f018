// The set of VAPID key pairs: which one browsers subscribe with, which ones still sign, which ones
// are given up. A subscription accepts only pushes signed with the key that it was made with (RFC
// 8292 section 4.2), so a former key stays until no subscription needs it. Pure.
import { createECDH, ECDH } from "node:crypto"
import * as Redacted from "effect/Redacted"

/**
 * current: offered to browsers. former: signs for the subscriptions made with it. retired: given
 * up, together with its subscriptions.
 */
export type KeyState = "current" | "former" | "retired"

export interface VapidKey {
  /** 65 bytes, an uncompressed P-256 point, base64url. */
  readonly publicKey: string
  /** Undefined for a retired key, and in processes that deliver nothing. */
  readonly privateKey: Redacted.Redacted<string> | undefined
  readonly state: KeyState
  /** Milliseconds since the epoch. Undefined: unknown here. */
  readonly createdAt: number | undefined
}

/**
 * Most keys that sign: enough for a new one each week for half a year. Bounded, as a subscription
 * whose key was noted wrongly is tried with each of them.
 */
export const usableKeysMax = 26

/** Oldest first; exactly one is current. */
export type KeySet = ReadonlyArray<VapidKey>

/** Why a VAPID public key cannot be used. */
const publicKeyFault = (publicKey: string): string | undefined => {
  const point = Buffer.from(publicKey, "base64url")
  // Canonical base64url only, as keys are compared as text.
  if (point.length !== 65 || point[0] !== 4 || point.toString("base64url") !== publicKey) {
    return "the public key must be 65 bytes in base64url, an uncompressed P-256 point"
  }
  try {
    ECDH.convertKey(point, "prime256v1")
    return undefined
  } catch {
    return "the public key is no point on the curve P-256"
  }
}

/** Why a VAPID key pair cannot be used. Never shows the private key. */
export const keyPairFault = (publicKey: string, privateKey: string): string | undefined => {
  const fault = publicKeyFault(publicKey)
  if (fault !== undefined) return fault
  const scalar = Buffer.from(privateKey, "base64url")
  if (scalar.length !== 32) return "the private key must be 32 bytes in base64url"
  const ecdh = createECDH("prime256v1")
  try {
    ecdh.setPrivateKey(scalar)
  } catch {
    return "the private key is no P-256 key"
  }
  return ecdh.getPublicKey("base64url") === publicKey
    ? undefined
    : "the public key does not belong to the private key"
}

/** Why a key cannot be used: a pair, or a public key alone. */
export const keyFault = ({
  privateKey,
  publicKey
}: Pick<VapidKey, "privateKey" | "publicKey">): string | undefined =>
  privateKey === undefined
    ? publicKeyFault(publicKey)
    : keyPairFault(publicKey, Redacted.value(privateKey))

export const currentKey = (set: KeySet): VapidKey => set.find(({ state }) => state === "current")!

/** The public keys that subscriptions may be made with. */
export const usableKeys = (set: KeySet): ReadonlyArray<string> =>
  set.filter(({ state }) => state !== "retired").map(({ publicKey }) => publicKey)

/** Stands in a setting for the private key of a retired key. */
const retiredWord = "retired"

/** One entry of the setting: a key, or the reason why it cannot be used. */
const parseEntry = (entry: string, needsPrivate: boolean): VapidKey | string => {
  const [publicKey = "", secret, ...rest] = entry.split(":")
  if (rest.length > 0 || (secret === undefined && needsPrivate))
    return "must be <public key>:<private key> or <public key>:retired"
  const isPair = secret !== undefined && secret !== retiredWord
  const fault = isPair ? keyPairFault(publicKey, secret) : publicKeyFault(publicKey)
  if (fault !== undefined) return fault
  return {
    publicKey,
    privateKey:
      isPair && needsPrivate ? Redacted.make(secret, { label: "VAPID private key" }) : undefined,
    state: secret === retiredWord ? "retired" : "former",
    createdAt: undefined
  }
}

/**
 * Reads a setting of former keys: `public:private` or `public:retired`, the oldest first, separated
 * by commas or blanks. `needsPrivate`: whether `public` alone is refused. Faults name the number of
 * an entry and never quote it.
 */
export const parseFormer = (
  text: string,
  needsPrivate: boolean
): { readonly keys: KeySet; readonly faults: ReadonlyArray<string> } => {
  const keys: Array<VapidKey> = []
  const faults: Array<string> = []
  const entries = text.split(/[\s,]+/).filter((entry) => entry !== "")
  for (const [i, entry] of entries.entries()) {
    const parsed = parseEntry(entry, needsPrivate)
    if (typeof parsed === "string") faults.push(`entry ${i + 1}: ${parsed}`)
    else keys.push(parsed)
  }
  if (usableKeys(keys).length >= usableKeysMax)
    faults.push(`at most ${usableKeysMax - 1} that are not retired`)
  return { keys, faults }
}

/** The setting for these keys. It holds private keys. */
export const formatFormer = (keys: KeySet): string =>
  keys
    .map(
      ({ privateKey, publicKey }) =>
        `${publicKey}:${privateKey === undefined ? retiredWord : Redacted.value(privateKey)}`
    )
    .join(",")

/** A key that is in the set twice. Undefined: there is none. */
export const repeatedKey = (set: KeySet): string | undefined =>
  set.find(({ publicKey }, i) => set.some((other, j) => j < i && other.publicKey === publicKey))
    ?.publicKey

/** The set with a new pair as the current one. The current pair becomes a former one. */
export const rotated = (
  set: KeySet,
  pair: Pick<VapidKey, "publicKey" | "privateKey">,
  now: number
): KeySet => [
  ...set.map((key) => (key.state === "current" ? { ...key, state: "former" as const } : key)),
  { ...pair, state: "current", createdAt: now }
]

/**
 * The set with one key retired. A lost key, which is not in the set, is added as retired.
 * `isOldest`: it goes to the front then, where the key of subscriptions without a noted key is
 * looked for.
 */
export const retired = (set: KeySet, publicKey: string, isOldest: boolean): KeySet => {
  const given = { publicKey, privateKey: undefined, state: "retired" as const }
  if (set.some((key) => key.publicKey === publicKey))
    return set.map((key) => (key.publicKey === publicKey ? { ...key, ...given } : key))
  const lost = { ...given, createdAt: undefined }
  return isOldest ? [lost, ...set] : [set[0]!, lost, ...set.slice(1)]
}
