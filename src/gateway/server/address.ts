// The address that a request is counted under: the peer of its connection or, behind proxies that
// the operator trusts, the client that they name in X-Forwarded-For. Pure.
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

/** Why a text is no range of addresses. */
export const rangeError = (range: string): string | undefined =>
  partsOf(range) === undefined
    ? "Expected an IP address or a range such as 10.0.0.0/8 or fd00::/8"
    : undefined

/** An IPv4 address that arrived on an IPv6 socket is written as IPv4; a zone is left out. */
export const plainAddress = (address = ""): string =>
  address.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, "").replace(/%.*$/, "")

/** Whether an address lies in one of the ranges. */
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

/** One entry of X-Forwarded-For: some proxies add the port, IPv6 may stand in brackets. */
const entryOf = (text: string): string => {
  const entry = text.trim()
  const bare = /^\[([^\]]+)\](?::\d+)?$/.exec(entry)?.[1] ?? /^([\d.]+):\d+$/.exec(entry)?.[1]
  return plainAddress(bare ?? entry)
}

/**
 * The client's address. X-Forwarded-For is read from its end, as long as the address that wrote the
 * entry is trusted; what an untrusted peer wrote counts for nothing.
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

/** The groups of an IPv6 address that stand for its first 64 bits. */
const network = (address: string): string => {
  const [head = "", tail] = address.split("::")
  const left = head === "" ? [] : head.split(":")
  const right = tail === undefined || tail === "" ? [] : tail.split(":")
  const zeros = new Array<string>(Math.max(0, 8 - left.length - right.length)).fill("0")
  const groups = [...left, ...(tail === undefined ? [] : zeros), ...right].slice(0, 4)
  return `${groups.map((group) => Number.parseInt(group, 16).toString(16)).join(":")}::/64`
}

/** What a client is counted under. An IPv6 client has a /64 to itself (RFC 6177), so that counts. */
export const accountOf = (address: string): string =>
  isIP(address) === 6 ? network(address) : address
