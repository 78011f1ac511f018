// Sets of VAPID keys for tests, and what they hold in comparable form.
import { Redacted } from "effect"
import type webpush from "web-push"
import type { KeySet } from "#secrets/key-set.ts"

export const pairOf = ({ privateKey, publicKey }: webpush.VapidKeys) => ({
  publicKey,
  privateKey: Redacted.make(privateKey)
})

/** A set that has only this pair. */
export const keySetOf = (pair: webpush.VapidKeys): KeySet => [
  { ...pairOf(pair), state: "current", createdAt: undefined }
]

/** Public key, state and private key of each key. */
export const states = (set: KeySet) =>
  set.map(({ privateKey, publicKey, state }) => [
    publicKey,
    state,
    privateKey && Redacted.value(privateKey)
  ])
