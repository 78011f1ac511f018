// Addresses that workers may call: the first and last of every reserved range are refused, their
// neighbours are judged alone.
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { isAllowedAddress } from "#basics/address-filter.ts"

const refused4 = [
  ["0.0.0.0", "0.255.255.255"],
  ["10.0.0.0", "10.255.255.255"],
  ["100.64.0.0", "100.127.255.255"],
  ["127.0.0.0", "127.255.255.255"],
  ["168.63.129.16", "168.63.129.16"],
  ["169.254.0.0", "169.254.255.255"],
  ["172.16.0.0", "172.31.255.255"],
  ["192.0.0.0", "192.0.0.255"],
  ["192.0.2.0", "192.0.2.255"],
  ["192.31.196.0", "192.31.196.255"],
  ["192.52.193.0", "192.52.193.255"],
  ["192.88.99.0", "192.88.99.255"],
  ["192.168.0.0", "192.168.255.255"],
  ["192.175.48.0", "192.175.48.255"],
  ["198.18.0.0", "198.19.255.255"],
  ["198.51.100.0", "198.51.100.255"],
  ["203.0.113.0", "203.0.113.255"],
  ["224.0.0.0", "239.255.255.255"],
  ["240.0.0.0", "255.255.255.255"]
] as const

const refused6 = [
  ["::", "::ffff:ffff"],
  ["::1", "::8.8.8.8"],
  ["::ffff:0.0.0.0", "::ffff:255.255.255.255"],
  ["::ffff:8.8.8.8", "::ffff:808:808"],
  ["::ffff:0:0.0.0.0", "::ffff:0:255.255.255.255"],
  ["64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff"],
  ["64:ff9b:0:0:0:1::", "64:ff9b:0:ffff:ffff:ffff:ffff:ffff"],
  ["100::", "100::ffff:ffff:ffff:ffff"],
  ["100:0:0:1::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["2001:1::", "2001:1::3"],
  ["2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff"],
  ["2001:3::", "2001:3:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["2001:4:112::", "2001:4:112:ffff:ffff:ffff:ffff:ffff"],
  ["2001:10::", "2001:1f:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["2001:20::", "2001:2f:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["2001:30::", "2001:3f:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["2001:40::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["2620:4f:8000::", "2620:4f:8000:ffff:ffff:ffff:ffff:ffff"],
  ["3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["4000::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"]
] as const

/** Right beside the ranges above, and what the push services resolve to. */
const allowed = [
  ...[
    "1.0.0.0",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "169.253.255.255"
  ],
  ...[
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "191.255.255.255",
    "192.0.1.0",
    "192.0.3.0",
    "192.88.98.255",
    "192.88.100.0"
  ],
  ...[
    "192.31.195.255",
    "192.31.197.0",
    "192.52.192.255",
    "192.52.194.0",
    "192.175.47.255",
    "192.175.49.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "198.51.99.255",
    "198.51.101.0",
    "203.0.112.255",
    "203.0.114.0"
  ],
  ...["223.255.255.255", "142.250.185.74", "34.107.243.93", "17.188.143.1", "20.190.1.1"],
  ...[
    "2a00:1450:4001:829::200a",
    "2620:149:a44:1::1",
    "2001:200::1",
    "2001:db7::1",
    "2001:db9::1",
    "2003::1",
    "2000::1"
  ],
  ...[
    "2620:4f:7fff::1",
    "2620:4f:8001::1",
    "3ffe::1",
    "3fff:1000::1",
    "168.63.129.15",
    "168.63.129.17"
  ]
]

describe("addresses", () => {
  it.for([...refused4, ...refused6])("from %s to %s are refused", ([first, last]) => {
    assert.isFalse(isAllowedAddress(first, false), first)
    assert.isFalse(isAllowedAddress(last, false), last)
  })

  it.for([
    ...[
      "169.254.169.254",
      "169.254.170.2",
      "168.63.129.16",
      "100.100.100.200",
      "192.0.0.192",
      "fd00:ec2::254",
      "fe80::a9fe:a9fe"
    ],
    ...[
      "::ffff:169.254.169.254",
      "::ffff:a9fe:a9fe",
      "::169.254.169.254",
      "64:ff9b::169.254.169.254",
      "64:ff9b::a9fe:a9fe"
    ],
    ...[
      "2002:a9fe:a9fe::",
      "2002:7f00:1::",
      "255.255.255.255",
      "0.0.0.0",
      "::ffff:127.0.0.1",
      "64:ff9b::127.0.0.1"
    ]
  ])("where clouds and machines keep what is theirs are refused: %s", (address) => {
    assert.isFalse(isAllowedAddress(address, false))
  })

  it.for(allowed)("of the public Internet are allowed: %s", (address) => {
    assert.isTrue(isAllowedAddress(address, false))
  })

  it("under 64:ff9b::/96 are judged by the IPv4 address in them, however it is spelled", () => {
    fc.assert(
      fc.property(fc.ipV4(), (ipv4) => {
        const [a = 0, b = 0, c = 0, d = 0] = ipv4.split(".").map(Number)
        const groups = `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`
        for (const address of [
          `64:ff9b::${ipv4}`,
          `64:ff9b::${groups}`,
          `64:FF9B:0:0:0:0:${groups}`
        ]) {
          assert.strictEqual(
            isAllowedAddress(address, false),
            isAllowedAddress(ipv4, false),
            address
          )
        }
      })
    )
    assert.isFalse(isAllowedAddress("64:ff9b::", false))
    assert.isFalse(isAllowedAddress("64:ff9b::7f00:1", true))
  })

  it("of this machine are allowed with the flag only, and the flag allows nothing else", () => {
    for (const address of ["127.0.0.1", "127.255.0.9", "::1"]) {
      assert.isTrue(isAllowedAddress(address, true), address)
      assert.isFalse(isAllowedAddress(address, false), address)
    }
    for (const [first, last] of [...refused4, ...refused6]) {
      if (first.startsWith("127.") || first === "::1") continue
      assert.isFalse(isAllowedAddress(first, true), first)
      assert.isFalse(isAllowedAddress(last, true), last)
    }
  })

  it("that are none, or belong to one interface, are refused", () => {
    for (const address of [
      "",
      "localhost",
      "8.8.8",
      "0x8080808",
      "2a00:1450::1%eth0",
      "[2a00:1450::1]"
    ]) {
      assert.isFalse(isAllowedAddress(address, true), address)
    }
  })
})
