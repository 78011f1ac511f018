// To which pages a login may return: whoever gets the browser there gets the token. Pure.
import { matchesGlob } from "#basics/wildcard.ts"
import { isLoopback } from "../provider/url.ts"
import { type LoginErrorCode, loginErrors } from "./login-errors.ts"

/** Browsers store cookies of at most 4,096 bytes; that of a login holds the redirect in base64. */
const charsMax = 2_000

/** Why a text is no pattern of hosts. */
export const hostPatternFault = (pattern: string): string | undefined =>
  /^[a-z0-9*.-]*[a-z0-9][a-z0-9.-]*(:\d{1,5})?$/.test(pattern) && !/:0*(80|443)$/.test(pattern)
    ? undefined
    : "Expected a host in lower case such as app.example.org, *.example.org or localhost:3000, " +
      "without a default port"

/** Why a browser must not be sent to a URL with a token. */
export const redirectFault = (text: string, hosts: ReadonlyArray<string>): string | undefined => {
  if (text.length > charsMax) return `Must have at most ${charsMax} characters`
  // Browsers read "https:\\host" and "https:/host" as URLs, too, and skip tabs and line breaks.
  const isPlain = /^[!-[\]-~]+$/.test(text) && /^https?:\/\/[^/?#@]+([/?#]|$)/i.test(text)
  const url = isPlain ? URL.parse(text) : null
  if (url === null) return "Must be an absolute URL in ASCII, without a login"
  if (url.protocol !== "https:" && !isLoopback(url)) return "Must begin with https://"
  const isAllowed = hosts.some((pattern) => matchesGlob(pattern, url.host))
  return isAllowed ? undefined : "The host is not allowed"
}

/** Whether a page is on one of the hosts. `page`: its URL or origin. */
export const isPageAt = (page: string, hosts: ReadonlyArray<string>): boolean =>
  redirectFault(URL.parse(page)?.origin ?? "", hosts) === undefined

/** A fragment without a name and `=` at its end. */
const withoutName = (fragment: string): string => {
  const end = fragment.length - 1
  if (fragment[end] !== "=") return fragment
  let start = end
  while (start > 0 && !"#/?&=".includes(fragment[start - 1]!)) start--
  return start === end ? fragment : fragment.slice(0, start)
}

/**
 * The URL with an error where `withToken` puts the token: of a fragment that ends in `token=`, that
 * name goes.
 */
export const withError = (redirect: string, code: LoginErrorCode): string => {
  const { href } = new URL(redirect)
  const [page = "", ...fragment] = href.split("#")
  const before = withoutName(fragment.join("#"))
  const description = encodeURIComponent(loginErrors[code])
  return `${page}#${before}error=${code}&error_description=${description}`
}

/** The URL with the token behind its fragment, as the URL parser writes it. */
export const withToken = (redirect: string, token: string): string => {
  const { href } = new URL(redirect)
  return `${href}${href.includes("#") ? "" : "#"}${encodeURIComponent(token)}`
}
