// Settings that name an origin, a host or a URL, which are compared with what browsers, proxies and
// sockets write. Each has one form there: a setting in another one would never match, in silence.
// So it is normalised where its meaning is plain, and refused at the start where it is not. Pure.
import { isIP } from "node:net"
import * as Config from "effect/Config"
import { checkedText, someWords } from "./values.ts"

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
