// The client's address, the key of all limits per address: the peer of the connection or, behind
// trusted proxies, the client that X-Forwarded-For names. Pure.
import { BlockList, isIP } from "node:net"

const familyOf = (address: string): "ipv4" | "ipv6" | undefined =>
  ({ 4: "ipv4", 6: "ipv6" })[isIP(address) as 4] as "ipv4" | "ipv6" | undefined

const partsOf = (range: string) => {
  const [address = "", bits, ...rest] = range.split("/")
  const family = familyOf(address)
  const bitsMax = family === "ipv4" ? 32 : 128
  const prefix = bits === undefined ? bitsMax : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN
  const isRange = family !== undefined && prefix <= bitsMax && rest.length === 0
  return isRange ? { address, family, prefix } : undefined
}

/**
 * The error of a text that is not a range of addresses; undefined when the text is one. A zone, or
 * an IPv4 address in the form of IPv6, matches no client: see {@link plainAddress}.
 */
export const rangeError = (range: string): string | undefined => {
  const parts = partsOf(range)
  return parts !== undefined && plainAddress(parts.address) === parts.address
    ? undefined
    : "Expected an IP address or a range such as 10.0.0.0/8 or fd00::/8"
}

/** The IPv4 address in the last 32 bits, as hexadecimal digits, of an IPv6 address. */
const dotted = (high: string, low: string): string =>
  [high, low]
    .map((digits) => Number.parseInt(digits, 16))
    .map((bits) => `${bits >> 8}.${bits & 255}`)
    .join(".")

/**
 * An address without its IPv6 zone. An IPv4-mapped IPv6 address, which some proxies write in
 * hexadecimal digits, becomes the IPv4 address: else all such clients would count as one.
 */
export const plainAddress = (address = ""): string =>
  address
    .split("%", 1)[0]!
    .replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, "")
    .replace(/^::ffff:([\da-f]{1,4}):([\da-f]{1,4})$/i, (_, high, low) => dotted(high, low))

/** A test whether an address lies in one of the ranges. */
export const makeTrust = (ranges: ReadonlyArray<string>): ((address: string) => boolean) => {
  // One list per family: a BlockList also matches IPv4 addresses against ::ffff:0:0/96.
  const lists = { ipv4: new BlockList(), ipv6: new BlockList() }
  for (const { address, family, prefix } of ranges.flatMap((range) => partsOf(range) ?? [])) {
    lists[family].addSubnet(address, prefix, family)
  }
  return (address) => {
    const family = familyOf(address)
    return family !== undefined && lists[family].check(address, family)
  }
}

/** The address in an entry of X-Forwarded-For, without a port and the brackets of IPv6. */
const entryOf = (text: string): string => {
  const entry = text.trim()
  const bare = /^\[([^\]]+)\](?::\d+)?$/.exec(entry)?.[1] ?? /^([\d.]+):\d+$/.exec(entry)?.[1]
  return plainAddress(bare ?? entry)
}

/**
 * The client's address. Reads X-Forwarded-For from its end, and stops at the first entry that an
 * untrusted address wrote: a client can send any text.
 */
export const clientOf = (
  peer: string | undefined,
  forwardedFor: string | undefined,
  isTrusted: (address: string) => boolean
): string => {
  let client = plainAddress(peer)
  const entries = forwardedFor?.split(",") ?? []
  while (isTrusted(client)) {
    const entry = entryOf(entries.pop() ?? "")
    if (isIP(entry) === 0) break
    client = entry
  }
  return client
}

/** The /64 of an IPv6 address. */
const network = (address: string): string => {
  const [head = "", tail] = address.split("::")
  const left = head === "" ? [] : head.split(":")
  const right = tail === undefined || tail === "" ? [] : tail.split(":")
  const zeros = new Array<string>(Math.max(0, 8 - left.length - right.length)).fill("0")
  const groups = [...left, ...(tail === undefined ? [] : zeros), ...right].slice(0, 4)
  return `${groups.map((group) => Number.parseInt(group, 16).toString(16)).join(":")}::/64`
}

/** The key of a client's limits. An IPv6 client has a whole /64 (RFC 6177), so use that. */
export const accountOf = (address: string): string =>
  isIP(address) === 6 ? network(address) : address
