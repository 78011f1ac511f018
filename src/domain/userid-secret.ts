// Which secret user ids are made with: a fact of LOG, so that a service started with another one
// says so. Pure.
import { Schema } from "effect"

/**
 * From here on user ids are made with the secret of this fingerprint; an empty one: with the one
 * that comes next.
 */
export const UseridSecretAdopted = Schema.Struct({
  fingerprint: Schema.String,
  /** Milliseconds since the epoch. */
  at: Schema.Int
})
export type UseridSecretAdopted = typeof UseridSecretAdopted.Type
