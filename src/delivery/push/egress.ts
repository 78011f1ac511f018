// Which addresses may be called. An endpoint URL comes from whoever may subscribe, so without this our workers would be their way into
// the network behind us (SSRF). Checked on every connect, with the address that is then used: a name cannot change its mind in between.
import { type LookupAddress, lookup } from "node:dns"
import { BlockList, isIP } from "node:net"

const blocked = new BlockList()
for (const [net, prefix] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4]
] as const)
  blocked.addSubnet(net, prefix, "ipv4")
for (const [net, prefix] of [
  ["::", 96],
  ["::ffff:0:0", 96],
  ["::ffff:0:0:0", 96],
  ["64:ff9b::", 96],
  ["64:ff9b:1::", 48],
  ["100::", 64],
  ["2001::", 32],
  ["2001:2::", 48],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["fc00::", 7],
  ["fe80::", 10],
  ["fec0::", 10],
  ["ff00::", 8]
] as const)
  blocked.addSubnet(net, prefix, "ipv6")

const loopback = new BlockList()
loopback.addSubnet("127.0.0.0", 8, "ipv4")
loopback.addAddress("::1", "ipv6")

/** Whether an address is one of the public Internet (or, where that is allowed, of this machine). */
export const isAllowedAddress = (address: string, allowLoopback: boolean): boolean => {
  const family = isIP(address) === 6 ? "ipv6" : "ipv4"
  return (allowLoopback && loopback.check(address, family)) || (isIP(address) !== 0 && !blocked.check(address, family))
}

type Callback = (error: NodeJS.ErrnoException | null, address: string | Array<LookupAddress>, family?: number) => void
type Resolve = (
  hostname: string,
  options: { all: true },
  callback: (error: NodeJS.ErrnoException | null, addresses: Array<LookupAddress>) => void
) => void

/**
 * A `lookup` for sockets: resolves every address of a name, refuses with ENDPOINT_NOT_ALLOWED if any of them is not allowed, and hands
 * only the checked ones on. Sockets skip it for IP literals, which is why endpoints may not be literals.
 */
export const checkedLookup =
  (allowLoopback: boolean, resolve: Resolve = lookup) =>
  (hostname: string, options: { all?: boolean | undefined }, callback: Callback): void =>
    resolve(hostname, { all: true }, (error, addresses) => {
      if (error !== null) return callback(error, [])
      if (addresses.length === 0 || !addresses.every(({ address }) => isAllowedAddress(address, allowLoopback))) {
        return callback(Object.assign(new Error("address not allowed"), { code: "ENDPOINT_NOT_ALLOWED" }), [])
      }
      return options.all === true ? callback(null, addresses) : callback(null, addresses[0]!.address, addresses[0]!.family)
    })
