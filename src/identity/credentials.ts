// Reads the credentials of a request.

/**
 * The longest time from a request to its caller, whatever the policies depend on: a request to a
 * provider, its retry, and what follows.
 */
export const identificationMillis = 7_000

/** The part of a request that policies look at. */
export interface Credentials {
  /** Names are in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** The scheme of the Authorization header in lower case; "" without the header. */
  readonly scheme: string
  /** The rest of the Authorization header. */
  readonly token: string
  /** The key of limits per address. */
  readonly address: string
  /** How long a policy may take. Policies that wait share `identificationMillis`. */
  readonly patienceMillis: number
  /** Whether the peer of the connection is one of BELLCAST_TRUSTED_PROXIES. */
  readonly fromTrustedProxy: boolean
  /** Whether a header arrived more than once: its value above is then all of them, joined. */
  readonly isRepeated: (header: string) => boolean
}

/** The client that sends a token. */
export type Asker = Pick<Credentials, "address" | "patienceMillis">

/** RFC 9110 section 11.4: a scheme, blanks, and what the scheme defines. */
const authorization = /^([A-Za-z][A-Za-z0-9!#$%&'*+.^_`|~-]*)(?: +(.*))?$/s

/** The request as the gateway has it. */
export interface Asking
  extends Pick<Credentials, "headers" | "address" | "fromTrustedProxy" | "isRepeated"> {
  /** The headers that arrived on the connection. */
  readonly received: Credentials["headers"]
  /** The source that sends the request on NATS; unset over HTTP. */
  readonly source?: string
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
