// Basic authentication without accounts: every pair of name and password is a user. For
// development, and behind a proxy that checks the pair.
import { isUtf8 } from "node:buffer"
import * as Effect from "effect/Effect"
import { textHmac } from "#basics/hmac.ts"
import type { Policy } from "../policy.ts"
import { known } from "../verdict.ts"

export const basicauth = (name: string, secret: string): Policy => {
  const idOf = basicIds(secret)
  return {
    name,
    verifies: false,
    isInAuthorization: true,
    challenge: 'Basic realm="Realm"',
    capability: {
      description: "Any user name and password make a user. Not meant for production.",
      url: "https://www.rfc-editor.org/rfc/rfc7617"
    },
    identify: ({ scheme, token }) => {
      const pair = pairOf(scheme, token)
      return Effect.succeed(pair === undefined ? undefined : known(idOf(pair)))
    }
  }
}

/** The pair `user:password` of Basic credentials; undefined without a user name. */
export const pairOf = (scheme: string, token: string): string | undefined => {
  if (scheme !== "basic" || !/^\S+$/.test(token)) return undefined
  const pair = textOf(Buffer.from(token, "base64"))
  return pair.indexOf(":") > 0 ? pair : undefined
}

/** RFC 7617 leaves the charset open: decode valid UTF-8 as UTF-8, other bytes as Latin-1. */
const textOf = (bytes: Buffer): string => bytes.toString(isUtf8(bytes) ? "utf8" : "latin1")

/** A function from credentials to user ids, by HMAC with a secret. */
export const basicIds = (secret: string): ((pair: string) => string) => {
  const hmac = textHmac(secret)
  return (pair) => hmac(pair, "hex")
}
