// Endpoints: which ones a subscription may have, because clients choose them, and this service
// sends requests to them; at which push service one is; and which spellings are the same endpoint.
// Delivery checks the resolved address again on every connection. Pure.
import { isPublicName } from "#basics/public-name.ts"

/**
 * The push services of the browsers, with their names in outcomes. Chromium without Google's brand,
 * as Debian's 156, has its endpoints at jmt17 (kPushMessagingStagingGcmEndpoint in its source).
 */
const pushServices = {
  google: ["fcm.googleapis.com", "jmt17.google.com"],
  mozilla: ["updates.push.services.mozilla.com"],
  apple: ["web.push.apple.com", "*.push.apple.com"],
  microsoft: ["*.notify.windows.com"]
} as const
export const knownPushHosts = Object.values(pushServices).flat()

export const otherPushService = "other"

/** The names of push services: those of the browsers, and one for all others. */
export const pushServiceNames = [...Object.keys(pushServices), otherPushService]

const endpointLengthMax = 2048

export interface EndpointPolicy {
  /**
   * Allowed beside the known ones: `push.example.org`, `*.example.org` (every subdomain), `*` (any
   * public host).
   */
  readonly hosts: ReadonlyArray<string>
  /** Development only: http or https to this machine, on any port. */
  readonly allowLoopback: boolean
}

/**
 * Returns why an endpoint is not allowed; undefined: it is. The URL parser repairs much: capitals,
 * missing slashes, other digits, escapes in the host, the default port. An endpoint that needs
 * repair is refused, so that every later reader sees the same, and each push service has one
 * spelling of its name.
 */
export const checkEndpoint = (endpoint: string, policy: EndpointPolicy): string | undefined => {
  if (endpoint.length > endpointLengthMax)
    return `Must be at most ${endpointLengthMax} characters long`
  if (!URL.canParse(endpoint)) return "Must be a URL"
  if (!plain.test(endpoint))
    return "Must be a URL of printable ASCII characters, without a backslash"
  if (endpoint.includes("#")) return "Must not have a fragment"
  const url = new URL(endpoint)
  if (url.username !== "" || url.password !== "") return "Must not carry credentials"
  const isLoopback =
    policy.allowLoopback && loopbackHosts.has(url.hostname) && /^https?:$/.test(url.protocol)
  const fault = isLoopback ? undefined : faultOfHost(url, policy.hosts)
  if (fault !== undefined) return fault
  if (!endpoint.startsWith(`${url.origin}/`))
    return `Must be written in its plain form, which begins with ${url.origin}/`
  if (endpoint !== url.href) return "Must be written as a URL parser writes it"
  // Both ignore a query: with it, a browser would have as many endpoints as somebody likes.
  return endpoint.includes("?") && ["google", "mozilla"].includes(pushServiceAt(url.hostname))
    ? "Must not have a query at this push service"
    : undefined
}

/** Printable ASCII but for the backslash, which the URL parser takes for a slash. */
const plain = /^[\x21-\x5b\x5d-\x7e]+$/

const loopbackHosts = new Set(["localhost", "127.0.0.1", "[::1]"])

const faultOfHost = (
  { hostname, port, protocol }: URL,
  hosts: ReadonlyArray<string>
): string | undefined => {
  if (protocol !== "https:") return "Must be an https URL"
  if (isAddress(hostname)) return "Must name its host, not an IP address"
  if (hostname.endsWith(".")) return "Must not have a host that ends in a dot"
  if (port !== "") return "Must use the default port"
  // Before the patterns: none may allow the endpoints of our own examples.
  if (isForDocumentation(hostname)) return "Must not be below .example, which is for documentation"
  const isKnown = [...knownPushHosts, ...hosts].some((pattern) => hostMatcher(pattern)(hostname))
  return isKnown ? undefined : "Must be at a push service that this server knows"
}

/** Reserved for documentation (RFC 2606 section 2): no push service can ever be there. */
const isForDocumentation = (hostname: string): boolean =>
  hostname === "example" || hostname.endsWith(".example")

/**
 * URL has normalised every spelling of an IPv4 address (decimal, hex, octal, full width) to this
 * one by then.
 */
const isAddress = (hostname: string): boolean =>
  hostname.startsWith("[") || /^\d+(\.\d+){3}$/.test(hostname)

/** Returns why a text is not a pattern of hosts, or none that an endpoint can ever match. */
export const pushHostFault = (pattern: string): string | undefined =>
  /^(\*|(\*\.)?[^\s/:@*?#]*[^\s/:@*?#.])$/u.test(pattern) && !isIpv4(normalHost(pattern))
    ? undefined
    : "Expected a host, *.host or *, without a scheme, port or path, and no address"

/** As a URL parser writes IPv4 addresses. Endpoints must name their hosts. */
const isIpv4 = (host: string): boolean => /^\d+(\.\d+){3}$/.test(host)

/** Returns whether a host falls under a pattern: see `EndpointPolicy.hosts`. */
export const hostMatcher = (pattern: string): ((hostname: string) => boolean) => {
  if (pattern === "*") return isPublicName
  const host = normalHost(pattern.replace(/^\*\./, ""))
  return pattern.startsWith("*.")
    ? (hostname) => hostname.endsWith(`.${host}`)
    : (hostname) => hostname === host
}

const normalHost = (host: string): string => {
  try {
    return new URL(`https://${host}`).hostname
  } catch {
    return host.toLowerCase()
  }
}

/** The name of the push service of an outcome or a dead letter. */
export const pushServiceOf = ({ service }: { readonly service?: string }): string =>
  service ?? otherPushService

/** The name of the push service at a host. */
export const pushServiceAt = (host: string): string =>
  matchers.find(([, matches]) => matches.some((each) => each(host)))?.[0] ?? otherPushService

const matchers = Object.entries(pushServices).map(
  ([name, hosts]) => [name, hosts.map(hostMatcher)] as const
)

/**
 * One text for all spellings of an endpoint that its push service takes for the same. An endpoint
 * that a browser gives stays as it is, but for `/wp/`, which Chromium has behind a flag
 * (kPushMessagingGcmEndpointWebpushPath).
 */
export const foldedEndpoint = (endpoint: string): string => {
  const fold = folds[pushServiceAt(endpoint.split("/", 3)[2] ?? "")]
  return fold === undefined ? endpoint : fold(endpoint.replace(/%[\da-f]{2}/gi, unescaped))
}

/** By push service: folds what it ignores, in an endpoint whose escapes are folded. */
const folds: Readonly<Record<string, (endpoint: string) => string>> = {
  google: (endpoint) => endpoint.replace(/^(https:\/\/fcm\.googleapis\.com)\/wp\//, "$1/fcm/send/"),
  // As autopush-rs: version 1 is that of a path without one, and tokens are padded.
  mozilla: (endpoint) =>
    endpoint.replace(/\/wpush\/(?=[^/]+$)/, "/wpush/v1/").replace(/(?<!=|%3d)(=|%3d)+$/, ""),
  apple: (endpoint) => endpoint.replace(/\?.*/, ""),
  // The token is base64 with escapes.
  microsoft: (endpoint) =>
    endpoint.replace(/(?<=\?token=)([^&]*).*/, (_, token: string) =>
      token.replaceAll("/", "%2f").replaceAll("=", "%3d")
    )
}

/** RFC 3986 section 6.2.2. Microsoft's escapes have lower case. */
const unescaped = (text: string): string => {
  const character = String.fromCharCode(Number.parseInt(text.slice(1), 16))
  return /[\w.~:-]/.test(character) ? character : text.toLowerCase()
}
