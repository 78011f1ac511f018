// The VAPID public keys that subscriptions may have been made with: in LOG, so that a service whose
// keys were lost reports it at its start. Pure.
import { Schema } from "effect"

/** From this message on, browsers were offered this key. Written once per key. */
export const KeyAdopted = Schema.Struct({
  publicKey: Schema.String,
  /** Milliseconds since the epoch. */
  at: Schema.Int
})
export type KeyAdopted = typeof KeyAdopted.Type
