// Whether a request names the metrics port by a name that is ours. A page of a foreign site can
// point a name of its own at this machine (DNS rebinding) and would then read what the port shows.
// Pure.
import { isIP } from "node:net"
import { siteSuffixes } from "#basics/public-name.ts"

/** Names that no site on the internet can have; `svc` is that of Kubernetes. */
const ownSuffixes = [...siteSuffixes, "svc"]

/**
 * Whether a Host header is ours: none, an address, a name without a dot, a name of a local network
 * or cluster, or one of `names`. With or without a port.
 */
export const isOwnHost = (header: string | undefined, names: ReadonlyArray<string>): boolean => {
  const [, ipv6, name = ""] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d*)?$/.exec(header ?? "") ?? ["", "?"]
  if (ipv6 !== undefined) return isIP(ipv6) === 6
  const host = name.toLowerCase().replace(/\.$/, "")
  return (
    isIP(host) === 4 ||
    !host.includes(".") ||
    ownSuffixes.some((suffix) => host.endsWith(`.${suffix}`)) ||
    names.some((each) => each.toLowerCase() === host)
  )
}
