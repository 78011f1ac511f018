// Settings that are addresses: of NATS with its TLS, of the metrics port, origins, hosts and pages,
// and the proxy for outgoing TLS. They are compared with what browsers, proxies and sockets write.
// Each has one form there: a setting in another one would never match, in silence. So it is
// normalised where its meaning is plain, and refused at the start where it is not.
import { isIP } from "node:net"
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Option from "effect/Option"
import { type HttpProxy, isEscaped, proxyOf } from "#basics/outgoing.ts"
import { checkedText, someWords } from "./values.ts"

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
 * Why a list cannot be used. Never quotes it. A password that is not escaped would be cut into
 * pieces by the URL parser, and one of them be taken for the host. A mix of nats:// and tls:// is
 * refused: the client demands TLS of all servers or of none, as the servers of a cluster announce
 * each other.
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

export interface ListenAddress {
  /** Undefined: every address of this machine. */
  readonly host: string | undefined
  /** 0: any free port. */
  readonly port: number
}

const listenAddressForm = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]*)):(\d{1,5})$/
const portMax = 65_535

/** The words that mean no port at all; some programs use 0 for that. */
export const isOff = (text: string): boolean => text === "off" || text === "0"

/** Undefined: the text is `off`, or no address. */
export const listenAddressOf = (text: string): ListenAddress | undefined => {
  const [, ipv6, name, port] = listenAddressForm.exec(text) ?? []
  if (port === undefined || Number(port) > portMax) return undefined
  return { host: ipv6 || name || undefined, port: Number(port) }
}

/** Why a text cannot be used; undefined when it can. */
export const listenAddressFault = (text: string): string | undefined =>
  isOff(text) || listenAddressOf(text) !== undefined
    ? undefined
    : 'Expected host:port (as in 127.0.0.1:9998, [::1]:9998, :9998 for every address), or "off"'

/** How an address is written in a URL. */
export const addressText = (host: string, port: number): string =>
  host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`

/** Why a text cannot be used, or the one form of it. */
type Form = (text: string) => { readonly fault: string } | { readonly value: string }

const faultOf =
  (form: Form) =>
  (text: string): string | undefined => {
    const result = form(text)
    return "fault" in result ? result.fault : undefined
  }
const valueOfForm =
  (form: Form) =>
  (text: string): string => {
    const result = form(text)
    return "value" in result ? result.value : text
  }

/** The setting of a name in its one form. */
export const address = (name: string, form: Form): Config.Config<string> =>
  checkedText(name, faultOf(form)).pipe(Config.map(valueOfForm(form)))

/** A list of such texts, at least one. */
export const addresses = (name: string, form: Form): Config.Config<ReadonlyArray<string>> =>
  someWords(name, faultOf(form)).pipe(Config.map((list) => list.map(valueOfForm(form))))

const defaultPorts: Readonly<Record<string, string>> = { http: "80", https: "443" }

const isPattern = (text: string): boolean => /[*?]/.test(text)

/** A label beyond ASCII as DNS has it. With a wildcard in it there is no such form. */
const labelOf = (label: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the range of ASCII.
  /^[\x00-\x7f]*$/.test(label) || isPattern(label)
    ? label
    : (URL.parse(`https://${label}`)?.hostname ?? label)

/** A host as browsers write it in an origin; undefined: no host. `*` and `?` stay. */
const originHostOf = (scheme: string, host: string): string | undefined => {
  const ascii = host.split(".").map(labelOf).join(".")
  if (!/^([a-z0-9.*?_-]+|\[[0-9a-f:.]+\])$/.test(ascii)) return undefined
  // Of 127.1 browsers make 127.0.0.1, but only where the scheme is one of the web.
  const isWeb = Object.hasOwn(defaultPorts, scheme) || isPattern(scheme)
  return isPattern(ascii) || !isWeb ? ascii : URL.parse(`https://${ascii}`)?.hostname
}

/** A port as it stands in an origin, with its colon; undefined: no port. */
const originPortOf = (scheme: string, port: string | undefined): string | undefined => {
  if (port === undefined) return ""
  if (isPattern(port)) return `:${port}`
  const number = Number(port)
  if (number > 65_535) return undefined
  return String(number) === defaultPorts[scheme] ? "" : `:${number}`
}

/** The scheme may be left to a `*` at the start, in which the host may begin, too. */
const originParts =
  /^(?:([a-z*?][a-z0-9+.*?-]*):\/\/)?([^\s/:@#\\]+|\[[0-9a-f:.]+\])(?::([\d*?]+))?\/?$/

/**
 * A pattern of origins (RFC 6454 section 6.2): lower case, no default port, no slash at the end.
 * `*` stands for any text, `?` for a character.
 */
export const originPattern: Form = (text) => {
  const expected = {
    fault:
      "Expected an origin such as https://www.example.org, with a port if it is not the default"
  }
  const lower = text.toLowerCase()
  if (lower === "null") return { value: lower }
  const [whole, scheme, host = "", port] = originParts.exec(lower) ?? []
  if (whole === undefined || (scheme === undefined && !/^[*?]/.test(host))) return expected
  const shownHost = originHostOf(scheme ?? "", host)
  const shownPort = originPortOf(scheme ?? "", port)
  if (shownHost === undefined || shownPort === undefined) return expected
  // Browsers leave the default port out, and of which scheme it would be is open here.
  if (isPattern(scheme ?? "*") && /^:(80|443)$/.test(shownPort)) return expected
  return { value: `${scheme === undefined ? "" : `${scheme}://`}${shownHost}${shownPort}` }
}

/** The names of this machine, to which browsers send secrets without TLS. */
const ownMachine = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/

/** The one origin of pages that this service serves: with https, or on this machine. */
export const ownPagesOrigin: Form = (text) => {
  const expected = {
    fault: "Expected one origin such as https://desk.example.org; http only for localhost"
  }
  const form = originPattern(text)
  const url = "value" in form && !isPattern(form.value) ? URL.parse(form.value) : null
  if (url === null) return expected
  const isSafe =
    url.protocol === "https:" || (url.protocol === "http:" && ownMachine.test(url.hostname))
  return isSafe ? { value: url.origin } : expected
}

/** The address of this machine where a server listens: a name or an address, without a port. */
export const ownHost: Form = (text) => {
  const host = text.replace(/^\[|\]$/g, "")
  return isIP(host) !== 0 || /^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$/i.test(host)
    ? { value: host }
    : { fault: "Expected an address of this machine, such as 0.0.0.0 or ::, without a port" }
}

/** A host as it stands in URLs, with or without a port. */
export const urlHost: Form = (text) => {
  const url = /^[^\s/?#@\\]+$/.test(text) ? URL.parse(`http://${text}`) : null
  // The parser drops port 80, which may be wanted beside https.
  const port = /:0*80$/.test(text) ? ":80" : ""
  return url === null
    ? { fault: "Expected a host, with or without a port" }
    : { value: `${url.host}${port}` }
}

/** The URL of a page for people. */
export const pageUrl: Form = (text) =>
  /^\S+$/.test(text) && /^https?:$/.test(URL.parse(text)?.protocol ?? "")
    ? { value: text }
    : { fault: "Expected a URL that begins with https:// or http://" }

/**
 * The proxy of this process; undefined: none. Its settings are those of the environment that other
 * programs have, too, and no settings of the service.
 */
export const OutgoingProxy: Context.Reference<HttpProxy | undefined> = Context.Reference<
  HttpProxy | undefined
>("bellcast/settings/OutgoingProxy", { defaultValue: () => proxyOf(process.env) })
