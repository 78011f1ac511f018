// Basic authentication without accounts: every pair of name and password is a user. For
// development, and behind a proxy that checks the pair.
import { isUtf8 } from "node:buffer"
import { Effect } from "effect"
import { textHmac } from "#basics/hmac.ts"
import type { Policy } from "./policy.ts"

const header = /^basic +([^\s]+)$/i

/** RFC 7617 leaves the charset open: decode valid UTF-8 as UTF-8, other bytes as Latin-1. */
const textOf = (bytes: Buffer): string => bytes.toString(isUtf8(bytes) ? "utf8" : "latin1")

/** The pair `user:password` of an Authorization header; undefined without a user name. */
export const credentialsOf = (authorization: string | undefined): string | undefined => {
  const encoded = header.exec(authorization?.trim() ?? "")?.[1]
  if (encoded === undefined) return undefined
  const pair = textOf(Buffer.from(encoded, "base64"))
  return pair.indexOf(":") > 0 ? pair : undefined
}

/** A function from credentials to user ids, by HMAC with a secret. */
export const basicIds = (secret: string): ((credentials: string) => string) => {
  const hmac = textHmac(secret)
  return (credentials) => hmac(credentials, "hex")
}

export const basic = (secret: string): Policy => {
  const idOf = basicIds(secret)
  return {
    name: "basicauth",
    verifies: false,
    challenge: 'Basic realm="Realm"',
    capability: {
      description: "Any user name and password make a user. Not meant for production.",
      url: "https://www.rfc-editor.org/rfc/rfc7617"
    },
    identify: (headers) => {
      const credentials = credentialsOf(headers["authorization"])
      return Effect.succeed(credentials === undefined ? undefined : idOf(credentials))
    }
  }
}
