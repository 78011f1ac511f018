// The user id secret, and the HMACs that are made with it.
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { textHmac } from "#basics/hmac.ts"
import { Settings } from "#config"

/** The secret; "" where none is set. */
export const useridSecret = Effect.map(Settings, ({ useridHmacSecret }) =>
  Option.match(useridHmacSecret, { onNone: () => "", onSome: Redacted.value })
)

/**
 * The HMAC with a key that is derived from the secret for one purpose. No colon in the purpose: ids
 * of basic auth are HMACs with the secret itself, of texts with a colon that the client chooses.
 */
export const hmacFor = (secret: string, purpose: string): ReturnType<typeof textHmac> =>
  textHmac(textHmac(secret)(purpose, "hex"))
