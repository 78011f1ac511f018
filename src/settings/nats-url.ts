// What may stand in BELLCAST_NATS_URL and in the settings of its TLS. The URL parser cuts a password
// that is not escaped into pieces, and would take one of them for the host.

import { Option } from "effect"

const schemes = ["nats:", "tls:"]
/** Without an example that the log would take for a URL and cut. */
const form =
  "host:port or user:password@host:port, comma-separated, nats:// or tls:// before it; in a password all but letters and digits is %XX"

/** The addresses of a list, each with its scheme. */
export const natsUrls = (list: string): ReadonlyArray<string> =>
  list.split(",").map((one) => (one.includes("://") ? one.trim() : `nats://${one.trim()}`))

const isEscaped = (text: string): boolean => {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

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

/** Whether an address of the list has tls://. The client then uses no server without TLS. */
export const demandsTls = (list: string): boolean =>
  natsUrls(list).some((one) => URL.parse(one)?.protocol === "tls:")

/**
 * Why a list cannot be used; quotes nothing of it. A list that mixes nats:// and tls:// is refused:
 * the client demands TLS of all servers or of none, as servers of a cluster announce each other.
 */
export const natsUrlFault = (list: string): string | undefined => {
  const urls = natsUrls(list)
  if (!urls.every(isAddress)) return `Expected ${form}`
  return demandsTls(list) && !urls.every(demandsTls)
    ? "Expected tls:// before every address or before none"
    : undefined
}

/** Files (PEM) for TLS with NATS. */
export interface NatsTlsFiles {
  /** Certificates of authorities. Undefined: the known ones. */
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

/** Why these files cannot be used; `list` is BELLCAST_NATS_URL. A file without tls:// has no use. */
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
