// Basic authentication without accounts: any pair of user and password is a user. For development, and for services
// behind a proxy that checks the pair.
import { createHmac } from "node:crypto"
import { Effect } from "effect"
import type { Policy } from "./policy.ts"

const header = /^basic +([^\s]+)$/i

/** RFC 7617 leaves the charset open: UTF-8 where the bytes allow it, else Latin-1. */
const textOf = (bytes: Buffer): string => {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return bytes.toString("latin1")
  }
}

/** The pair `user:password` of an Authorization header; undefined when it names nobody. */
export const credentialsOf = (authorization: string | undefined): string | undefined => {
  const encoded = header.exec(authorization?.trim() ?? "")?.[1]
  if (encoded === undefined) return undefined
  const pair = textOf(Buffer.from(encoded, "base64"))
  return pair.indexOf(":") > 0 ? pair : undefined
}

export const basicId = (credentials: string, secret: string): string =>
  createHmac("sha256", secret).update(credentials, "utf8").digest("hex")

export const basic = (secret: string): Policy => ({
  name: "basicauth",
  challenge: 'Basic realm="Realm"',
  capability: {
    description: "Any user name and password make a user. Not meant for production.",
    url: "https://www.rfc-editor.org/rfc/rfc7617"
  },
  identify: (headers) => {
    const credentials = credentialsOf(headers["authorization"])
    return Effect.succeed(credentials === undefined ? undefined : basicId(credentials, secret))
  }
})
