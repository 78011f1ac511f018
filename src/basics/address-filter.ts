// Which addresses may be called when others choose the URL: clients choose the endpoint URLs of
// pushes. Without this filter they could make a process call into the private network (SSRF). The
// filter checks every connection, and the checked address is the one that is used: DNS cannot
// change it in between.
import { type LookupAddress, lookup } from "node:dns"
import { BlockList, isIP } from "node:net"
import { SingleFlight } from "./single-flight.ts"

type Callback = (
  error: NodeJS.ErrnoException | null,
  address: string | Array<LookupAddress>,
  family?: number
) => void
export type Lookup = (
  hostname: string,
  options: { all?: boolean | undefined },
  callback: Callback
) => void

/**
 * As `anyLookup`, but fails with ADDRESS_NOT_ALLOWED if any address of the name is not allowed, or
 * there is none. Sockets do not call it for IP literals; that is why endpoints may not be literals.
 */
export const checkedLookup = (allowLoopback: boolean, resolve: Resolve = sharedLookup): Lookup =>
  anyLookup((hostname, options, callback) =>
    resolve(hostname, options, (error, addresses) => {
      const isAllowed =
        addresses.length > 0 &&
        addresses.every(({ address }) => isAllowedAddress(address, allowLoopback))
      if (error !== null || isAllowed) return callback(error, addresses)
      const code = "ADDRESS_NOT_ALLOWED"
      return callback(Object.assign(new Error("address not allowed"), { code }), [])
    })
  )

/** A `lookup` for sockets: all addresses of a name, or its first one. */
export const anyLookup =
  (resolve: Resolve = sharedLookup): Lookup =>
  (hostname, options, callback) =>
    resolve(hostname, { all: true }, (error, addresses) => {
      const [first] = addresses
      if (error !== null || first === undefined)
        return callback(error ?? Object.assign(new Error("no address"), { code: "ENOTFOUND" }), [])
      return options.all === true
        ? callback(null, addresses)
        : callback(null, first.address, first.family)
    })

export type Resolved = (
  error: NodeJS.ErrnoException | null,
  addresses: Array<LookupAddress>
) => void

/** Finds all addresses of a name. */
export type Resolve = (hostname: string, options: { all: true }, callback: Resolved) => void

/**
 * Joins lookups of a name that is being looked up already. Each would occupy one of two threads of
 * the process until the resolver gives up, long after the connection that wanted it.
 */
export const sharing = (resolve: Resolve): Resolve => {
  const lookups = new SingleFlight<string, Parameters<Resolved>>()
  return (hostname, options, callback) =>
    void lookups.join(
      hostname,
      ([error, addresses]) => callback(error, [...addresses]),
      (done) => resolve(hostname, options, (error, addresses = []) => done([error, addresses]))
    )
}

/** All lookups of the process that go through here. */
const sharedLookup: Resolve = sharing((hostname, options, callback) =>
  lookup(hostname, options, callback)
)

const listOf = (
  family: "ipv4" | "ipv6",
  nets: ReadonlyArray<readonly [net: string, prefix: number]>
): BlockList => {
  const list = new BlockList()
  for (const [net, prefix] of nets) list.addSubnet(net, prefix, family)
  return list
}

// Source of both lists: the IANA special-purpose address registries for IPv4 and IPv6 (RFC 6890,
// RFC 8190). AS112 and AMT relays are registered as globally reachable, but networks run instances
// of their own under these addresses, and no push service lives there. So refuse them too.
//
// Keep one list per family: a BlockList also matches IPv4 addresses against ::ffff:0:0/96, which
// would refuse every IPv4 address.
const blocked4 = listOf("ipv4", [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  // Azure's host: it gives credentials to virtual machines, under an address in public space.
  ["168.63.129.16", 32],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  // AS112 (RFC 7535) and AMT (RFC 7450).
  ["192.31.196.0", 24],
  ["192.52.193.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  // AS112, directly delegated (RFC 7534).
  ["192.175.48.0", 24],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4]
])
// Public IPv6 addresses lie within 2000::/3 (RFC 4291 section 2.4). These parts of it are not
// public.
const unicast6 = listOf("ipv6", [["2000::", 3]])
const blocked6 = listOf("ipv6", [
  // IETF protocol assignments (RFC 2928): Teredo, benchmarks, AMT, AS112, ORCHID, ORCHIDv2, drones.
  ["2001::", 23],
  // Documentation (RFC 3849).
  ["2001:db8::", 32],
  // 6to4 (RFC 3056).
  ["2002::", 16],
  // AS112, directly delegated (RFC 7534).
  ["2620:4f:8000::", 48],
  // Documentation (RFC 9637).
  ["3fff::", 20]
])
const translated = listOf("ipv6", [["64:ff9b::", 96]])
const loopback4 = listOf("ipv4", [["127.0.0.0", 8]])
const loopback6 = listOf("ipv6", [["::1", 128]])

/** Whether an address is public (or, where that is allowed, of this machine). */
export const isAllowedAddress = (address: string, allowLoopback: boolean): boolean => {
  // A zone (`%eth0`) names an interface of this machine.
  if (isIP(address) === 0 || address.includes("%")) return false
  return isIP(address) === 4
    ? (allowLoopback && loopback4.check(address, "ipv4")) || !blocked4.check(address, "ipv4")
    : (allowLoopback && loopback6.check(address, "ipv6")) || isPublic6(address)
}

/** The IPv4 address in the last 32 bits of an address under 64:ff9b::/96 (RFC 6052). */
const embedded = (address: string): string => {
  // URL normalises the address, so at most two hexadecimal groups are behind the `::`.
  const groups =
    new URL(`http://[${address}]`).hostname.slice(1, -1).split("::")[1]?.split(":") ?? []
  const bits = Number.parseInt(
    groups
      .map((group) => group.padStart(4, "0"))
      .join("")
      .padStart(8, "0"),
    16
  )
  return [bits >>> 24, (bits >>> 16) & 255, (bits >>> 8) & 255, bits & 255].join(".")
}

const isPublic6 = (address: string): boolean => {
  // NAT64: each address stands for an IPv4 address.
  if (translated.check(address, "ipv6")) return !blocked4.check(embedded(address), "ipv4")
  return unicast6.check(address, "ipv6") && !blocked6.check(address, "ipv6")
}
