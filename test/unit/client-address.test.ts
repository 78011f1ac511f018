// The client's address for limits. A forged X-Forwarded-For must not change this address.
import { assert, describe, it } from "vitest"
import { accountOf, clientOf, makeTrust, rangeError } from "#gateway/client-address.ts"

const trusted = makeTrust(["10.0.0.0/8", "127.0.0.1", "fd00::/8"])

describe("the client's address", () => {
  it("is the peer's unless the peer is trusted, whatever a header says", () => {
    assert.equal(clientOf("192.0.2.1", "198.51.100.7", trusted), "192.0.2.1")
    assert.equal(clientOf("192.0.2.1", undefined, trusted), "192.0.2.1")
    assert.equal(clientOf(undefined, "198.51.100.7", trusted), "")
  })

  it("is the last entry that a trusted proxy wrote about an untrusted address", () => {
    assert.equal(clientOf("10.1.2.3", "198.51.100.7", trusted), "198.51.100.7")
    assert.equal(clientOf("10.1.2.3", "1.1.1.1, 198.51.100.7,10.9.9.9", trusted), "198.51.100.7")
    assert.equal(clientOf("::ffff:127.0.0.1", "2001:db8::1", trusted), "2001:db8::1")
    assert.equal(clientOf("fd00::2", "[2001:db8::1]:443", trusted), "2001:db8::1")
    assert.equal(clientOf("10.1.2.3", "198.51.100.7:1234", trusted), "198.51.100.7")
    for (const mapped of ["::ffff:198.51.100.7", "::FFFF:c633:6407", "[::ffff:c633:6407]:443"])
      assert.equal(clientOf("10.1.2.3", mapped, trusted), "198.51.100.7", mapped)
    assert.equal(clientOf("10.1.2.3", "198.51.100.7, ::ffff:a00:1", trusted), "198.51.100.7")
  })

  it("is the proxy's own where the proxy names no address", () => {
    for (const header of [undefined, "", "unknown", "1.1.1.1, nonsense", "1.1.1.1,"]) {
      assert.equal(clientOf("10.1.2.3", header, trusted), "10.1.2.3")
    }
    assert.equal(clientOf("10.1.2.3", "10.4.4.4", trusted), "10.4.4.4")
  })

  it("counts an IPv6 client by its first 64 bits", () => {
    assert.equal(accountOf("2001:db8:0:1::1"), "2001:db8:0:1::/64")
    assert.equal(accountOf("2001:db8:0:1:ffff:ffff:ffff:ffff"), "2001:db8:0:1::/64")
    assert.equal(accountOf("2001:0db8:0000:0001::abcd"), "2001:db8:0:1::/64")
    assert.equal(accountOf("::1"), "0:0:0:0::/64")
    assert.notEqual(accountOf("2001:db8:0:2::1"), accountOf("2001:db8:0:1::1"))
    assert.equal(accountOf("192.0.2.1"), "192.0.2.1")
  })

  it("trusts addresses and ranges, and refuses what is neither", () => {
    for (const range of ["10.0.0.0/8", "::1", "fd00::/128", "0.0.0.0/0"]) {
      assert.isUndefined(rangeError(range), range)
    }
    for (const range of [
      "",
      "proxy",
      "10.0.0.0/33",
      "10.0.0/8",
      "::/129",
      "::1/",
      "::1/a",
      "1.1.1.1/8/8"
    ]) {
      assert.isString(rangeError(range), range)
    }
    assert.isTrue(trusted("10.255.0.1"))
    assert.isFalse(trusted("11.0.0.1"))
    assert.isFalse(trusted("::ffff:a00:1"))
  })
})
