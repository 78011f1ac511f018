// The lookup of a socket: it hands on only addresses that workers may call.
import { assert, describe, it, vi } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { anyLookup, checkedLookup, type Resolved, sharing } from "#basics/address-filter.ts"
import { makeSend } from "#identity/provider/client.ts"

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

describe("lookups of one name", () => {
  it("are one at a time, and all sockets get its addresses", async () => {
    const asked: Array<readonly [string, Resolved]> = []
    const lookup = anyLookup(sharing((name, _options, callback) => asked.push([name, callback])))
    const found = (name: string, all: boolean) =>
      new Promise((resolve) =>
        lookup(name, { all }, (error, address) => resolve(error?.code ?? address))
      )
    const waiting = [found("a.example", true), found("b.example", true), found("a.example", false)]
    assert.deepStrictEqual(
      asked.map(([name]) => name),
      ["a.example", "b.example"]
    )
    asked[0]![1](null, [...of("192.0.2.1", "192.0.2.2")])
    asked[1]![1](Object.assign(new Error("nope"), { code: "EAI_AGAIN" }), [])
    assert.deepStrictEqual(await Promise.all(waiting), [
      of("192.0.2.1", "192.0.2.2"),
      "EAI_AGAIN",
      "192.0.2.1"
    ])
    void found("a.example", true)
    assert.strictEqual(asked.length, 3)
  })

  it.live("are one for all requests to a provider whose name is not found in time", () =>
    Effect.gen(function* () {
      // With https a new origin gets one connection until its protocol is known.
      const url = "http://login.example.org/introspect"
      const asked = { shared: 0, alone: 0 }
      const never = (which: keyof typeof asked) => () => {
        asked[which] += 1
      }
      const hosts = ["login.example.org"]
      const shared = yield* makeSend("oauth", hosts, sharing(never("shared")))
      const alone = yield* makeSend("oauth", hosts, never("alone"))
      const fifty = Array.from({ length: 50 })
      const all = { concurrency: "unbounded" } as const
      const sent = yield* Effect.forkChild(
        Effect.forEach(
          [shared, alone],
          (send) => Effect.forEach(fifty, () => send({ url, form: {} }), all),
          all
        )
      )
      yield* Effect.promise(() => vi.waitFor(() => assert.isAbove(asked.alone, 10)))
      assert.strictEqual(asked.shared, 1)
      yield* Fiber.interrupt(sent)
    }).pipe(Effect.scoped)
  )
})
