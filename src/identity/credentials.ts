// Reads the credentials of a request.
import { isObject } from "#basics/json.ts"
import { type Credentials, identificationMillis } from "./policy.ts"

/** RFC 9110 section 11.4: a scheme, blanks, and what the scheme defines. */
const authorization = /^([A-Za-z][A-Za-z0-9!#$%&'*+.^_`|~-]*)(?: +(.*))?$/s

/** The request as the gateway has it. */
export interface Asking
  extends Pick<Credentials, "headers" | "address" | "fromTrustedProxy" | "isRepeated"> {
  /** The headers that arrived on the connection. */
  readonly received: Credentials["headers"]
}

/**
 * The credentials of a request. An entry of a batch may have an Authorization of its own; all other
 * headers are those that arrived, as whoever sends the batch chooses the headers of its entries.
 */
export const credentialsOf = (asking: Asking): Credentials => {
  const { address, fromTrustedProxy, isRepeated, received } = asking
  const headers = { ...received, authorization: asking.headers["authorization"] }
  const [, scheme = "", token = ""] =
    authorization.exec(headers["authorization"]?.trim() ?? "") ?? []
  const said = { headers, scheme: scheme.toLowerCase(), token: token.trim() }
  const from = { address, fromTrustedProxy, isRepeated }
  return { ...said, ...from, patienceMillis: identificationMillis }
}

/** The members of a JWT's payload, without a check of its signature; undefined: no JWT. */
export const claimsOf = (token: string): Readonly<Record<string, unknown>> | undefined => {
  const parts = token.split(".")
  if (parts.length !== 3) return undefined
  try {
    const claims: unknown = JSON.parse(Buffer.from(parts[1]!, "base64url").toString("utf8"))
    return isObject(claims) ? claims : undefined
  } catch {
    return undefined
  }
}
