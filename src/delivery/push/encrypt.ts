// Message encryption for Web Push (RFC 8291, aes128gcm of RFC 8188). One record, and a fresh salt
// for every message.
//
// One key pair serves at most 32 messages of one broadcast and is then thrown away. RFC 8291
// section 3.1 describes a pair for each message without requiring it. Sharing saves a third of the
// cost.
// - Confidentiality holds: each receiver has a shared secret of its own (Bellare, Boldyreva,
//   Staddon, PKC 2003, on one ephemeral key for many receivers).
// - The public key stands in each message, so push services that compare messages see which of them
//   were encrypted together. Two subscriptions of one user never share a pair (see makePairs), so a
//   shared pair does not link a user's browsers.
//
// Used instead of web-push's `encrypt`, because encryption is most of the cost of a broadcast: this
// takes 0.56 of the CPU for the same bytes (`make bench`). The primitives are node:crypto's. Tests
// check the result against the RFC's vectors and with an independent decrypter.
import {
  createCipheriv,
  createPublicKey,
  createSecretKey,
  diffieHellman,
  generateKeyPairSync,
  type KeyObject,
  randomFillSync
} from "node:crypto"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { hmac } from "#basics/hmac.ts"
import { Caches, MemoryCache } from "#memory/cache-memory.ts"
import type { Target } from "../attempt.ts"

const saltBytes = 16
const keyBytes = 65
const tagBytes = 16
/** salt, record size, key id length, key id (RFC 8188 section 2.1). */
const headerBytes = saltBytes + 4 + 1 + keyBytes
const recordSize = 4096

const info = Buffer.from("WebPush: info\0")
const one = Buffer.from([1])
const contentKeyInfo = Buffer.from("Content-Encoding: aes128gcm\0\x01")
const nonceInfo = Buffer.from("Content-Encoding: nonce\0\x01")

// One call of randomFillSync draws 256 salts.
const pool = Buffer.alloc(saltBytes * 256)
let drawn = pool.length
const freshSalt = (): Buffer => {
  if (drawn === pool.length) {
    randomFillSync(pool)
    drawn = 0
  }
  drawn += saltBytes
  return pool.subarray(drawn - saltBytes, drawn)
}

/** Of resident memory: 2,643 for the key (Node 24, measured), the rest for its place in a map. */
const keptKeyBytes = 3_000

/** An encrypted body; undefined: a push without payload; or why a body cannot be made. */
export type Sealed = Uint8Array | undefined | "invalid-key" | "encryption"

/** The payload of a broadcast for a target; undefined: no payload. */
type PaddedOf = (target: Target) => Uint8Array | undefined

/**
 * Bodies encrypted in one go. One at a time, between two sockets, each costs a fifth more CPU: the
 * processor's caches are cold then.
 */
export const sealedAtOnce = 32

/** Encrypts the bodies for `targets` in batches, each when its first body is needed. */
export class Bodies {
  readonly #targets: ReadonlyArray<Target>
  readonly #paddedOf: PaddedOf
  readonly #publicKeys: PublicKeys["Service"]
  readonly #batches: Array<Array<Sealed>> = []

  constructor(
    targets: ReadonlyArray<Target>,
    paddedOf: PaddedOf,
    publicKeys: PublicKeys["Service"]
  ) {
    this.#targets = targets
    this.#paddedOf = paddedOf
    this.#publicKeys = publicKeys
  }

  /** Returns the body for the target with this index, once. */
  take(index: number): Sealed {
    const start = index - (index % sealedAtOnce)
    this.#batches[start] ??= [
      ...sealAll(this.#targets.slice(start, start + sealedAtOnce), this.#paddedOf, this.#publicKeys)
    ]
    const batch = this.#batches[start]
    const body = batch[index - start]
    // Free the memory as soon as the body is sent.
    batch[index - start] = undefined
    return body
  }
}

/**
 * Encrypts the payload of one broadcast for each target of one batch. Two targets of one user never
 * share a key pair.
 */
export const sealAll = (
  targets: ReadonlyArray<Target>,
  paddedOf: PaddedOf,
  publicKeys: PublicKeys["Service"]
): ReadonlyArray<Sealed> => {
  const pairOf = makePairs()
  return targets.map((target) => {
    const padded = paddedOf(target)
    return padded && sealOne(target, padded, pairOf(target.user), publicKeys)
  })
}

const sealOne = (
  { stored }: Target,
  padded: Uint8Array,
  pair: KeyPair,
  publicKeys: PublicKeys["Service"]
): Sealed => {
  const { auth, p256dh } = stored.data.keys
  let recipient: Recipient
  try {
    recipient = publicKeys.recipientOf(p256dh, auth)
  } catch {
    // Keys are checked at registration, so this list was not written by Bellcast.
    return "invalid-key"
  }
  try {
    return seal(padded, recipient, pair)
  } catch {
    // A fault of this process, so the push is retried and the subscription stays.
    return "encryption"
  }
}

/**
 * The body of a push message to `recipient`. `padded` is the plaintext with its delimiter (see
 * {@link pad}).
 */
export const seal = (
  padded: Uint8Array,
  recipient: Recipient,
  pair: KeyPair,
  salt: Uint8Array = freshSalt()
): Buffer => {
  const { auth, key, p256dh } = recipient
  const secret = diffieHellman({ privateKey: pair.privateKey, publicKey: key })
  // RFC 8291 section 3.4: both HKDF steps, each expand being one block.
  const keyMaterial = hmac(hmac(auth, secret), info, p256dh, pair.publicKey, one)
  const pseudoRandomKey = hmac(salt, keyMaterial)
  const contentKey = hmac(pseudoRandomKey, contentKeyInfo).subarray(0, 16)
  const nonce = hmac(pseudoRandomKey, nonceInfo).subarray(0, 12)
  const body = Buffer.allocUnsafe(headerBytes + padded.length + tagBytes)
  body.set(salt, 0)
  body.writeUInt32BE(recordSize, saltBytes)
  body[saltBytes + 4] = keyBytes
  body.set(pair.publicKey, saltBytes + 5)
  // A KeyObject costs 7 us, the same key as bytes 19 us (measured): Node validates bytes at length.
  const cipher = createCipheriv("aes-128-gcm", createSecretKey(contentKey), nonce)
  body.set(cipher.update(padded), headerBytes)
  cipher.final()
  body.set(cipher.getAuthTag(), headerBytes + padded.length)
  return body
}

/**
 * Returns the plaintext with the delimiter of a last record (RFC 8188 section 2). Made once per
 * broadcast.
 */
export const pad = (plaintext: Uint8Array): Buffer => {
  // Payloads are kept: a slice of Buffer's pool would keep 64 KiB of it.
  const padded = Buffer.allocUnsafeSlow(plaintext.length + 1)
  padded.set(plaintext)
  padded[plaintext.length] = 2
  return padded
}

export interface KeyPair {
  /** 65 bytes, an uncompressed P-256 point. */
  readonly publicKey: Buffer
  readonly privateKey: KeyObject
}

/** Returns a new ephemeral key pair (RFC 8291 section 3.1). */
export const freshKeyPair = (): KeyPair => {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" })
  // DER costs twice as much as JWK, and the raw format is missing in the oldest supported Node
  // (22.19).
  const { x, y } = publicKey.export({ format: "jwk" })
  const point = Buffer.allocUnsafe(keyBytes)
  point[0] = 4
  point.write(x!, 1, "base64url")
  point.write(y!, 33, "base64url")
  return { publicKey: point, privateKey }
}

/**
 * Returns a function that gives the key pair for the next message to `user` in one batch of one
 * broadcast. Messages to different users share a pair; messages to the same user never do. A batch
 * costs as many pairs (25 us each) as its user with the most subscriptions has messages in it.
 */
export const makePairs = (): ((user: string) => KeyPair) => {
  const pairs: Array<KeyPair> = []
  const used = new Map<string, number>()
  return (user) => {
    const i = used.get(user) ?? 0
    used.set(user, i + 1)
    if (i === pairs.length) pairs.push(freshKeyPair())
    return pairs[i]!
  }
}

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

/**
 * Public keys of subscriptions, as encryption needs them. Importing one costs 36 us, a third of
 * encrypting, and the imported key takes 2.6 KB: as many are kept as their share of memory holds.
 */
export class PublicKeys extends Context.Service<
  PublicKeys,
  {
    /** Like the function `recipientOf`, with the imported key if it was kept. */
    readonly recipientOf: (p256dh: string, auth: string) => Recipient
  }
>()("bellcast/delivery/PublicKeys") {
  static readonly layer = Layer.effect(
    PublicKeys,
    Effect.map(Caches, (caches) => {
      const kept = new MemoryCache<KeyObject>(caches.share("public-keys"))
      const imported = (p256dh: string, point: Buffer): KeyObject => {
        const key = importKey(point)
        kept.set(p256dh, key, keptKeyBytes)
        return key
      }
      return {
        recipientOf: (p256dh, auth) =>
          recipientOf(p256dh, auth, (point) => kept.get(p256dh) ?? imported(p256dh, point))
      }
    })
  )
}
