// The hosts of push services, and patterns of them. Pure.
import { isPublicName } from "#basics/public-name.ts"

/** As a URL parser writes IPv4 addresses. Endpoints must name their hosts. */
const isIpv4 = (host: string): boolean => /^\d+(\.\d+){3}$/.test(host)

/** Returns why a text is not a pattern of hosts, or none that an endpoint can ever match. */
export const pushHostFault = (pattern: string): string | undefined =>
  /^(\*|(\*\.)?[^\s/:@*?#]*[^\s/:@*?#.])$/u.test(pattern) && !isIpv4(normalHost(pattern))
    ? undefined
    : "Expected a host, *.host or *, without a scheme, port or path, and no address"

const normalHost = (host: string): string => {
  try {
    return new URL(`https://${host}`).hostname
  } catch {
    return host.toLowerCase()
  }
}

/** Returns whether a host falls under a pattern: see `EndpointPolicy.hosts`. */
export const hostMatcher = (pattern: string): ((hostname: string) => boolean) => {
  if (pattern === "*") return isPublicName
  const host = normalHost(pattern.replace(/^\*\./, ""))
  return pattern.startsWith("*.")
    ? (hostname) => hostname.endsWith(`.${host}`)
    : (hostname) => hostname === host
}
