// Which endpoints a subscription may have: clients choose them, and this service sends requests to
// them. Delivery checks the resolved address again on every connection. Pure.
import { hostMatcher } from "./push-host.ts"
import { knownPushHosts, pushServiceAt } from "./push-services.ts"

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

const loopbackHosts = new Set(["localhost", "127.0.0.1", "[::1]"])

/** Reserved for documentation (RFC 2606 section 2): no push service can ever be there. */
const isForDocumentation = (hostname: string): boolean =>
  hostname === "example" || hostname.endsWith(".example")

/** Printable ASCII but for the backslash, which the URL parser takes for a slash. */
const plain = /^[\x21-\x5b\x5d-\x7e]+$/

/**
 * URL has normalised every spelling of an IPv4 address (decimal, hex, octal, full width) to this
 * one by then.
 */
const isAddress = (hostname: string): boolean =>
  hostname.startsWith("[") || /^\d+(\.\d+){3}$/.test(hostname)

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
