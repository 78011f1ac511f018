// Public keys of subscriptions, as encryption needs them. Importing one costs 36 us, a third of
// encrypting, and the imported key takes 2.6 KB: as many are kept as their share of memory holds.
import { createPublicKey, type KeyObject } from "node:crypto"
import type { Share } from "#memory/cache-memory.ts"
import { MemoryCache } from "#memory/cache-memory.ts"

/** Of resident memory: 2,643 for the key (Node 24, measured), the rest for its place in a map. */
const keptKeyBytes = 3_000

/** The keys of one subscription: a message is encrypted for them. */
export interface Recipient {
  /** 65 bytes, an uncompressed P-256 point. */
  readonly p256dh: Buffer
  /** 16 bytes. */
  readonly auth: Buffer
  readonly key: KeyObject
}

/** The DER of a P-256 public key up to its point (RFC 5480). */
const pointPrefix = Buffer.from("3059301306072a8648ce3d020106082a8648ce3d030107034200", "hex")

/** Throws when `point` is none of the curve. */
const importKey = (point: Buffer): KeyObject =>
  createPublicKey({ format: "der", type: "spki", key: Buffer.concat([pointPrefix, point]) })

/** Decodes a subscription's keys (base64url). Throws when p256dh is no point on the curve. */
export const recipientOf = (p256dh: string, auth: string, keyOf = importKey): Recipient => {
  const point = Buffer.from(p256dh, "base64url")
  return { p256dh: point, auth: Buffer.from(auth, "base64url"), key: keyOf(point) }
}

export class PublicKeys {
  readonly #kept: MemoryCache<KeyObject>

  constructor(share: Share) {
    this.#kept = new MemoryCache(share)
  }

  /** Like the function `recipientOf`, with the imported key if it was kept. */
  recipientOf(p256dh: string, auth: string): Recipient {
    return recipientOf(
      p256dh,
      auth,
      (point) => this.#kept.get(p256dh) ?? this.#imported(p256dh, point)
    )
  }

  #imported(p256dh: string, point: Buffer): KeyObject {
    const key = importKey(point)
    this.#kept.place(p256dh, key, keptKeyBytes)
    return key
  }
}
