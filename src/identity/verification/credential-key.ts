// The keys under which verdicts on credentials are remembered: no token is in memory or in NATS
// longer than its request.
import * as Effect from "effect/Effect"
import { hmacFor, useridSecret } from "../principals.ts"

/** A function from texts to one key, 43 characters. No text may hold a line feed but the last. */
export const credentialKeys = Effect.map(useridSecret, (secret) => {
  const hmac = hmacFor(secret, "bellcast verification")
  return (...texts: ReadonlyArray<string | number>): string => hmac(texts.join("\n"), "base64url")
})
