// The hosts of push services, and patterns of them. Pure.

/** Names that never leave a machine or a site (RFC 6761, 6762, 8375, 9476). */
const localSuffixes = [
  "localhost",
  "local",
  "internal",
  "home.arpa",
  "alt",
  "invalid",
  "test",
  "onion"
]

const isPublicName = (hostname: string): boolean =>
  hostname.includes(".") &&
  !localSuffixes.some((suffix) => hostname === suffix || hostname.endsWith(`.${suffix}`))

/** Returns why a text is not a pattern of hosts. */
export const pushHostFault = (pattern: string): string | undefined =>
  /^(\*|(\*\.)?[^\s/:@*?#]+)$/u.test(pattern)
    ? undefined
    : "Expected a host, *.host or *, without a scheme, port or path"

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
