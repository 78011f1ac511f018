// Checks BELLCAST_NATS_URL and the settings of its TLS. A password that is not escaped would be cut
// into pieces by the URL parser, and one of them be taken for the host.

import * as Option from "effect/Option"
import { isEscaped } from "#basics/proxy.ts"

const schemes = ["nats:", "tls:"]
/** For messages. Has no scheme before the example: the log would cut it like any URL. */
const natsUrlForm =
  "host:port or user:password@host:port, comma-separated, nats:// or tls:// before it; " +
  "in a password all but letters and digits is %XX"

/** The addresses of a list, each with its scheme. */
export const natsUrls = (list: string): ReadonlyArray<string> =>
  list.split(",").map((one) => (one.includes("://") ? one.trim() : `nats://${one.trim()}`))

const isAddress = (one: string): boolean => {
  const url = URL.parse(one)
  if (url === null || !schemes.includes(url.protocol) || url.hostname === "") return false
  return (
    /^\/?$/.test(url.pathname) &&
    url.search === "" &&
    url.hash === "" &&
    isEscaped(url.username) &&
    isEscaped(url.password)
  )
}

/** Whether an address of the list has tls://. The client then refuses servers without TLS. */
export const demandsTls = (list: string): boolean =>
  natsUrls(list).some((one) => URL.parse(one)?.protocol === "tls:")

/** Whether an address has another login than the first one, which the client uses for all. */
const hasOtherLogins = (urls: ReadonlyArray<string>): boolean => {
  const logins = urls.map((one) => {
    const { password, username } = new URL(one)
    return username === "" && password === "" ? undefined : `${username}:${password}`
  })
  return logins.some((login) => login !== undefined && login !== logins[0])
}

/**
 * Why a list cannot be used. Never quotes it. A mix of nats:// and tls:// is refused: the client
 * demands TLS of all servers or of none, as the servers of a cluster announce each other.
 */
export const natsUrlFault = (list: string): string | undefined => {
  const urls = natsUrls(list)
  if (!urls.every(isAddress)) return `Expected ${natsUrlForm}`
  if (demandsTls(list) && !urls.every(demandsTls))
    return "Expected tls:// before every address or before none"
  return hasOtherLogins(urls)
    ? "Expected one login: that of the first address is used for all; write it there, no other"
    : undefined
}

/** Why a text cannot be the first tokens of subjects. */
export const inboxPrefixFault = (text: string): string | undefined =>
  /^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/.test(text)
    ? undefined
    : "Expected letters, digits, _ and -, such as _INBOX_bellcast"

/** Files (PEM) for TLS with NATS. */
export interface NatsTlsFiles {
  /** Certificates of authorities. Undefined: those that Node.js and the system trust. */
  readonly ca?: string | undefined
  /** The client's certificate and private key. Undefined: the client shows none. */
  readonly cert?: string | undefined
  readonly key?: string | undefined
}

/** The files, from settings or flags. */
export const natsTlsFiles = (
  given: Readonly<Record<keyof NatsTlsFiles, Option.Option<string>>>
): NatsTlsFiles => ({
  ca: Option.getOrUndefined(given.ca),
  cert: Option.getOrUndefined(given.cert),
  key: Option.getOrUndefined(given.key)
})

export const natsTlsSettings = {
  ca: "BELLCAST_NATS_TLS_CA",
  cert: "BELLCAST_NATS_TLS_CERT",
  key: "BELLCAST_NATS_TLS_KEY"
} as const satisfies Record<keyof NatsTlsFiles, string>

/** Why these files cannot be used. `list` is BELLCAST_NATS_URL, which must have tls://. */
export const natsTlsFault = (list: string | undefined, files: NatsTlsFiles): string | undefined => {
  const keys = ["ca", "cert", "key"] as const
  const given = keys.filter((key) => files[key] !== undefined).map((key) => natsTlsSettings[key])
  if (given.length === 0) return undefined
  if (list === undefined || !demandsTls(list))
    return `${given.join(", ")}: Expected tls:// in BELLCAST_NATS_URL beside it`
  return (files.cert === undefined) === (files.key === undefined)
    ? undefined
    : `${natsTlsSettings.cert}, ${natsTlsSettings.key}: Expected both or none`
}
