// The set of VAPID key pairs: which one browsers subscribe with, which ones still sign, which ones are given up. A subscription takes only pushes
// signed with the key it was made with (RFC 8292 section 4.2), so a key that is no longer offered is kept until nobody needs it. Pure.
import { createECDH, ECDH } from "node:crypto"
import { Redacted } from "effect"

/** current: offered to browsers. kept: signs for the subscriptions made with it. retired: given up, together with them. */
export type KeyState = "current" | "kept" | "retired"

export interface VapidKey {
  /** 65 bytes, an uncompressed P-256 point, base64url. */
  readonly publicKey: string
  /** Undefined for a retired key, and in processes that deliver nothing. */
  readonly privateKey: Redacted.Redacted<string> | undefined
  readonly state: KeyState
  /** Milliseconds since the epoch; undefined: not known here. */
  readonly createdAt: number | undefined
}

/** Keys that sign: a subscription whose key was noted wrongly is tried with each of them. One a week for half a year. */
export const usableKeysMax = 26

/** Oldest first; exactly one is current. */
export type KeySet = ReadonlyArray<VapidKey>

/** Why a VAPID public key cannot be used. */
export const publicKeyFault = (publicKey: string): string | undefined => {
  const point = Buffer.from(publicKey, "base64url")
  // In its one canonical spelling, as it is compared byte by byte.
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

export const currentKey = (set: KeySet): VapidKey => set.find(({ state }) => state === "current")!

/** The public keys that subscriptions may be made with. */
export const usableKeys = (set: KeySet): ReadonlyArray<string> =>
  set.filter(({ state }) => state !== "retired").map(({ publicKey }) => publicKey)

/** What stands in the place of a private key that was given up. */
const retiredWord = "retired"

/**
 * Former keys as a setting holds them: `public:private` or `public:retired`, the oldest first, separated by commas or blanks. Where no private key is
 * needed, the public one will do. Faults name the place of an entry, never what stands there.
 */
export const parseFormer = (
  text: string,
  needsPrivate: boolean
): { readonly keys: KeySet; readonly faults: ReadonlyArray<string> } => {
  const keys: Array<VapidKey> = []
  const faults: Array<string> = []
  const entries = text.split(/[\s,]+/).filter((entry) => entry !== "")
  for (const [i, entry] of entries.entries()) {
    const [publicKey = "", secret, ...rest] = entry.split(":")
    const state: KeyState = secret === retiredWord ? "retired" : "kept"
    const whole = rest.length === 0 && (secret !== undefined || !needsPrivate)
    const checked =
      state === "kept" && secret !== undefined
        ? keyPairFault(publicKey, secret)
        : publicKeyFault(publicKey)
    const fault = whole ? checked : "must be <public key>:<private key> or <public key>:retired"
    if (fault !== undefined) faults.push(`entry ${i + 1}: ${fault}`)
    else {
      const privateKey =
        state === "kept" && needsPrivate
          ? Redacted.make(secret!, { label: "VAPID private key" })
          : undefined
      keys.push({ publicKey, privateKey, state, createdAt: undefined })
    }
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

/** Which key stands twice in a set; undefined: none. */
export const repeatedKey = (set: KeySet): string | undefined =>
  set.find(({ publicKey }, i) => set.some((other, j) => j < i && other.publicKey === publicKey))
    ?.publicKey

/** With a new pair, which is current from now on; the one that was is kept. */
export const rotated = (
  set: KeySet,
  pair: Pick<VapidKey, "publicKey" | "privateKey">,
  now: number
): KeySet => [
  ...set.map((key) => (key.state === "current" ? { ...key, state: "kept" as const } : key)),
  { ...pair, state: "current", createdAt: now }
]

/**
 * Without the private key of one that is not current. A key that is not in the set was lost: it is noted that this was meant. `isOldest`: it then
 * belongs to the front, where subscriptions without a noted key look for theirs.
 */
export const retired = (set: KeySet, publicKey: string, isOldest: boolean): KeySet => {
  const given = { publicKey, privateKey: undefined, state: "retired" as const }
  if (set.some((key) => key.publicKey === publicKey))
    return set.map((key) => (key.publicKey === publicKey ? { ...key, ...given } : key))
  const lost = { ...given, createdAt: undefined }
  return isOldest ? [lost, ...set] : [set[0]!, lost, ...set.slice(1)]
}
