// The setting of the metrics port: which texts are addresses, which mean no port.
import { assert, describe, it } from "vitest"
import { addressText, isOff, listenAddressFault, listenAddressOf } from "#settings/addresses.ts"

describe("the address of the metrics port", () => {
  it.for([
    ["127.0.0.1:9998", "127.0.0.1", 9998],
    ["localhost:0", "localhost", 0],
    ["[::1]:9998", "::1", 9998],
    [":9998", undefined, 9998],
    ["0.0.0.0:65535", "0.0.0.0", 65_535]
  ] as const)("may be %s", ([text, host, port]) => {
    assert.isUndefined(listenAddressFault(text))
    assert.deepEqual(listenAddressOf(text), { host, port })
  })

  it.for(["off", "0"])("may be %s: no port", (text) => {
    assert.isUndefined(listenAddressFault(text))
    assert.isTrue(isOff(text))
  })

  it.for([
    "9998",
    "127.0.0.1",
    "127.0.0.1:65536",
    "::1:9998",
    "http://127.0.0.1:9998",
    "a b:1",
    "no"
  ])("may not be %s", (text) => {
    assert.match(listenAddressFault(text)!, /^Expected host:port .*"off"$/)
  })

  it("is written with brackets around IPv6", () => {
    assert.equal(addressText("::1", 9998), "[::1]:9998")
    assert.equal(addressText("127.0.0.1", 9998), "127.0.0.1:9998")
  })
})
