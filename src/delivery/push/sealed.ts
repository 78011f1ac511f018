// The bodies of a batch of pushes, encrypted for each target.
import { type KeyPair, makePairs, recipientOf, seal } from "./encrypt.ts"
import type { Target } from "./target.ts"

/** An encrypted body; undefined: a push without payload; or why a body cannot be made. */
export type Sealed = Uint8Array | undefined | "invalid-key" | "encryption"

const sealOne = (target: Target, padded: Uint8Array, pair: KeyPair): Sealed => {
  const { auth, p256dh } = target.stored.data.keys
  try {
    target.recipient ??= recipientOf(p256dh, auth)
  } catch {
    // Keys are checked at registration, so this list was not written by Bellcast.
    return "invalid-key"
  }
  try {
    return seal(padded, target.recipient, pair)
  } catch {
    // A fault of this process, so the push is retried and the subscription stays.
    return "encryption"
  }
}

/**
 * Encrypts `padded`, the payload of one broadcast (undefined: no payload), for each target of one
 * batch. Two targets of one user never share a key pair.
 */
export const sealAll = (
  targets: ReadonlyArray<Target>,
  padded: Uint8Array | undefined
): ReadonlyArray<Sealed> => {
  if (padded === undefined) return targets.map(() => undefined)
  const pairOf = makePairs()
  return targets.map((target) => sealOne(target, padded, pairOf(target.user)))
}

/**
 * Bodies encrypted in one go. One at a time, between two sockets, each costs a fifth more CPU: the
 * processor's caches are cold then.
 */
export const sealedAtOnce = 32

/** Encrypts the bodies for `targets` in batches, each when its first body is needed. */
export class Bodies {
  readonly #targets: ReadonlyArray<Target>
  readonly #padded: Uint8Array | undefined
  readonly #batches: Array<Array<Sealed>> = []

  constructor(targets: ReadonlyArray<Target>, padded: Uint8Array | undefined) {
    this.#targets = targets
    this.#padded = padded
  }

  /** Returns the body for the target with this index, once. */
  take(index: number): Sealed {
    const start = index - (index % sealedAtOnce)
    this.#batches[start] ??= [
      ...sealAll(this.#targets.slice(start, start + sealedAtOnce), this.#padded)
    ]
    const batch = this.#batches[start]
    const body = batch[index - start]
    // Free the memory as soon as the body is sent.
    batch[index - start] = undefined
    return body
  }
}
