// Which VAPID public keys subscriptions may have been made with: facts of LOG, so that a service
// whose keys were lost says so at its start. Pure.
import { Schema } from "effect"

/** From here on browsers were offered this key. Written once for each key. */
export const KeyAdopted = Schema.Struct({
  publicKey: Schema.String,
  /** Milliseconds since the epoch. */
  at: Schema.Int
})
export type KeyAdopted = typeof KeyAdopted.Type
