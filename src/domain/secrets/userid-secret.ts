// The secret that user ids are made with: its fingerprint is in LOG, so that a service started with
// another secret reports it. Pure.
import { Schema } from "effect"

/**
 * From this message on, user ids are made with the secret of this fingerprint. Empty: with the
 * secret that is adopted next.
 */
export const UseridSecretAdopted = Schema.Struct({
  fingerprint: Schema.String,
  /** Milliseconds since the epoch. */
  at: Schema.Int
})
export type UseridSecretAdopted = typeof UseridSecretAdopted.Type
