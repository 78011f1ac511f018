// Settings that name an origin, a host or a URL, which are compared with what browsers, proxies and
// sockets write. Each has one form there: a setting in another one would never match, in silence.
// So it is normalised where its meaning is plain, and refused at the start where it is not. Pure.
import { isIP } from "node:net"
import * as Config from "effect/Config"
import { checkedText, someWords } from "./words.ts"

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

/** Names in letters beyond ASCII are written as DNS has them. `*` and `?` stay. */
const asciiOf = (host: string): string | undefined => {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the range of ASCII.
  if (/^[\x00-\x7f]*$/.test(host)) return host
  const ascii = URL.parse(`https://${host.replaceAll("?", "zq-any-zq")}`)?.hostname
  return ascii?.replaceAll("zq-any-zq", "?")
}

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
  if (/^[*?]/.test(lower) || lower === "null") return { value: lower }
  const [, scheme, host = "", port] =
    /^([a-z][a-z0-9+.-]*):\/\/([^\s/:@#\\]+|\[[0-9a-f:.]+\])(?::([\d*?]+))?\/?$/.exec(lower) ?? []
  const ascii = asciiOf(host)
  const isHost = /^([a-z0-9.*?_-]+|\[[0-9a-f:.]+\])$/.test(ascii ?? "")
  if (scheme === undefined || !isHost || Number(port ?? 0) > 65_535) return expected
  const shown = port === undefined || port === defaultPorts[scheme] ? "" : `:${port}`
  return { value: `${scheme}://${ascii}${shown}` }
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
