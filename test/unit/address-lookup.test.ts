// The lookup of a socket: it hands on only addresses that workers may call.
import { assert, describe, it } from "@effect/vitest"
import { checkedLookup } from "#basics/address-filter.ts"

type Addresses = ReadonlyArray<{ readonly address: string; readonly family: number }>
const of = (...addresses: ReadonlyArray<string>): Addresses =>
  addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }))

/** A lookup over a resolver that gives these answers one after the other. */
const lookupOver = (answers: ReadonlyArray<Addresses | Error>, allowLoopback = false) => {
  const left = [...answers]
  const lookup = checkedLookup(allowLoopback, (_hostname, _options, callback) => {
    const answer = left.shift() ?? []
    if (answer instanceof Error) callback(answer, [])
    else callback(null, [...answer])
  })
  return (options: { all?: boolean } = {}) =>
    new Promise<unknown>((resolve) =>
      lookup("push.example.com", options, (error, address, family) =>
        resolve(error === null ? [address, family] : error.code)
      )
    )
}

describe("the lookup of a socket", () => {
  it("hands on the checked address, or all of them where all were asked for", async () => {
    const both = of("142.250.185.74", "2a00:1450:4001:829::200a")
    const lookup = lookupOver([both, both])
    assert.deepStrictEqual(await lookup(), ["142.250.185.74", 4])
    assert.deepStrictEqual(await lookup({ all: true }), [both, undefined])
  })

  it("refuses a name with one public and one private address, in any order", async () => {
    assert.strictEqual(
      await lookupOver([of("142.250.185.74", "10.0.0.1")])({ all: true }),
      "ADDRESS_NOT_ALLOWED"
    )
    assert.strictEqual(await lookupOver([of("fd00::1", "142.250.185.74")])(), "ADDRESS_NOT_ALLOWED")
  })

  it("checks again each time, so it refuses a name that turns private later", async () => {
    const lookup = lookupOver([of("142.250.185.74"), of("127.0.0.1"), of("142.250.185.74")])
    assert.deepStrictEqual(await lookup(), ["142.250.185.74", 4])
    assert.strictEqual(await lookup(), "ADDRESS_NOT_ALLOWED")
    assert.deepStrictEqual(await lookup(), ["142.250.185.74", 4])
  })

  it("takes a loopback address with the flag only", async () => {
    assert.strictEqual(await lookupOver([of("127.0.0.1")])(), "ADDRESS_NOT_ALLOWED")
    assert.deepStrictEqual(await lookupOver([of("127.0.0.1")], true)(), ["127.0.0.1", 4])
  })

  it("refuses a name without any address, and passes on why a name was not found", async () => {
    assert.strictEqual(await lookupOver([[]])(), "ADDRESS_NOT_ALLOWED")
    assert.strictEqual(
      await lookupOver([Object.assign(new Error("nope"), { code: "ENOTFOUND" })])(),
      "ENOTFOUND"
    )
  })
})
