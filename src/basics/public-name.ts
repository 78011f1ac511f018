// Which names are those of hosts on the internet. Pure.

/** Names that never leave a machine or a site (RFC 6761, 6762, 8375, ICANN's `internal`). */
export const siteSuffixes = ["localhost", "local", "internal", "home.arpa"]
/** Names that lead nowhere in the DNS (RFC 6761, 7686, 9476). */
const deadSuffixes = ["alt", "invalid", "test", "onion"]
const suffixes = [...siteSuffixes, ...deadSuffixes]

const label = /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/

/**
 * Whether a host, as a URL parser writes it, is a name that the public DNS may know: no address, no
 * name of one label, none below a suffix of a site.
 */
export const isPublicName = (hostname: string): boolean => {
  const labels = hostname.split(".")
  return (
    labels.length > 1 &&
    labels.every((each) => label.test(each)) &&
    // The last label of an IPv4 address is a number, and that of no name is.
    !/^\d+$/.test(labels.at(-1)!) &&
    !suffixes.some((suffix) => hostname === suffix || hostname.endsWith(`.${suffix}`))
  )
}
