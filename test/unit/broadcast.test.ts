// Broadcasts: the headers of a publisher, the payload bytes of subscribers, and the number of
// shards of a channel.
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import {
  bodyHeaders,
  payloadBytesMax,
  payloadOf,
  publisherHeaders,
  publisherOf,
  readHeaders,
  ttlSecondsMax
} from "#domain/broadcast.ts"
import { shardDepth } from "#domain/job.ts"

type Given = Parameters<typeof readHeaders>[0] extends (name: infer Name extends string) => unknown
  ? { readonly [K in Name]?: string }
  : never
const read = (given: Given) => readHeaders((name) => given[name])
const faultsOf = (given: Given) => read(given).errors.map(({ name }) => name)

describe("the publisher of a broadcast", () => {
  it("is the user whom the gateway names, whatever the characters of the id", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (id) => {
        const headers = publisherHeaders(id)
        assert.match(Object.values(headers)[0]!, /^[!-~]*$/)
        assert.strictEqual(
          publisherOf("rest", (name) => headers[name]),
          id
        )
      })
    )
  })

  it("is the source of a NATS client, which may write any header", () => {
    const headers = publisherHeaders("oauth:root")
    assert.strictEqual(
      publisherOf("billing", (name) => headers[name]),
      "nats:billing"
    )
  })
})

describe("the headers of a broadcast", () => {
  it("have defaults: the service's TTL, normal urgency, no topic", () => {
    assert.deepStrictEqual(read({}), {
      headers: { ttlSeconds: 86_400, urgency: "normal" },
      errors: []
    })
  })

  it("are taken as they are", () => {
    const { errors, headers } = read({ TTL: "0", Urgency: "very-low", Topic: "weather_-09" })
    assert.deepStrictEqual(headers, { ttlSeconds: 0, urgency: "very-low", topic: "weather_-09" })
    assert.deepStrictEqual(errors, [])
  })

  it.for(["0", "1", "060", String(ttlSecondsMax)])("take a TTL of %s", (TTL) => {
    assert.deepStrictEqual(faultsOf({ TTL }), [])
    assert.strictEqual(read({ TTL }).headers.ttlSeconds, Number(TTL))
  })

  it.for([
    "",
    " ",
    "-1",
    "+1",
    "1.5",
    "1e3",
    "0x10",
    "ten",
    "1 ",
    "1,2",
    "2419201",
    "99999999999",
    "９"
  ])("refuse a TTL of %j", (TTL) => {
    assert.deepStrictEqual(faultsOf({ TTL }), ["TTL"])
  })

  it.for(["very-low", "low", "normal", "high"])("take an Urgency of %s", (Urgency) => {
    assert.deepStrictEqual(faultsOf({ Urgency }), [])
    assert.strictEqual(read({ Urgency }).headers.urgency, Urgency)
  })

  it.for(["", "High", "urgent", "very_low", "low,high", " low"])(
    "refuse an Urgency of %j",
    (Urgency) => {
      assert.deepStrictEqual(faultsOf({ Urgency }), ["Urgency"])
    }
  )

  it.for(["a", "A-Za-z0-9_", "x".repeat(32)])("take a Topic of %s", (Topic) => {
    assert.deepStrictEqual(faultsOf({ Topic }), [])
  })

  it.for(["", "x".repeat(33), "a b", "a.b", "a=", "a+b", "a/b", "ä", "a\n"])(
    "refuse a Topic of %j",
    (Topic) => {
      assert.deepStrictEqual(faultsOf({ Topic }), ["Topic"])
    }
  )

  it.for(["1", "1000", "100000"])("take a rate of %s", (rate) => {
    assert.deepStrictEqual(faultsOf({ "Bellcast-Rate": rate }), [])
    assert.strictEqual(read({ "Bellcast-Rate": rate }).headers.rate, Number(rate))
  })

  it.for(["", "0", "01", "-1", "1.5", "1e3", "100001", "1000000", "fast"])(
    "refuse a rate of %j",
    (rate) => {
      assert.deepStrictEqual(faultsOf({ "Bellcast-Rate": rate }), ["Bellcast-Rate"])
    }
  )

  it("give back the name that a gateway wrote, whatever its characters", () => {
    const names = fc
      .string({ unit: "grapheme", minLength: 1, maxLength: 200 })
      .filter((name) => name.length <= 200 && !/[\p{Cc}\p{Cs}]/u.test(name))
    fc.assert(
      fc.property(names, (name) => {
        const headers = bodyHeaders({ name, rate: undefined })
        assert.match(headers["Bellcast-Name"]!, /^[!-~]*$/)
        assert.strictEqual(read(headers).headers.name, name)
      })
    )
  })

  it.for(["", "%0A", "a\u0007b", "x".repeat(201)])("refuse a name of %j", (name) => {
    assert.deepStrictEqual(faultsOf({ "Bellcast-Name": name }), ["Bellcast-Name"])
    assert.notProperty(read({ "Bellcast-Name": name }).headers, "name")
  })

  it("take a name of NATS clients that is not percent-encoded", () => {
    for (const name of ["Brücke, 3. Lauf", "100 % off"])
      assert.strictEqual(read({ "Bellcast-Name": name }).headers.name, name)
  })

  it("say of a test that it is one, and take nothing but true", () => {
    assert.strictEqual(read({ "Bellcast-Test": "true" }).headers.test, true)
    for (const test of ["false", "1", ""])
      assert.deepStrictEqual(faultsOf({ "Bellcast-Test": test }), ["Bellcast-Test"])
  })

  it("name every fault at once, with what would be right", () => {
    const { errors } = read({ TTL: "x", Urgency: "x", Topic: "" })
    assert.deepStrictEqual(
      errors.map(({ name }) => name),
      ["TTL", "Urgency", "Topic"]
    )
    for (const { description, name } of errors)
      assert.isTrue(description.startsWith(`${name} must be `), description)
    assert.include(errors[0]?.description, String(ttlSecondsMax))
  })
})

const textOf = (data: Record<string, unknown>) => new TextDecoder().decode(payloadOf(data))

/** The same value with the keys of every object in another order. */
const shuffled = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(shuffled)
  if (typeof value !== "object" || value === null) return value
  const entries = Object.entries(value).map(([key, inner]) => [key, shuffled(inner)] as const)
  return Object.fromEntries(entries.reverse())
}

describe("the payload of a broadcast", () => {
  it("is JSON with sorted keys at every depth, without white space", () => {
    const data = { z: 1, a: { d: [{ y: null, b: true }, "x y"], c: 1.5 }, B: {} }
    assert.strictEqual(textOf(data), '{"B":{},"a":{"c":1.5,"d":[{"b":true,"y":null},"x y"]},"z":1}')
  })

  it("carries text as raw UTF-8", () => {
    assert.strictEqual(textOf({ t: "Grüße 🔔 \u2028" }), '{"t":"Grüße 🔔 \u2028"}')
    assert.deepStrictEqual(payloadOf({ t: "é" }), Uint8Array.from(Buffer.from('{"t":"é"}')))
  })

  it("keeps the order of lists and every key, even one named __proto__", () => {
    assert.strictEqual(textOf({ list: [3, 1, 2] }), '{"list":[3,1,2]}')
    assert.strictEqual(
      textOf(JSON.parse('{"b":1,"__proto__":{"x":1}}')),
      '{"__proto__":{"x":1},"b":1}'
    )
  })

  it("is not there when there is nothing to carry", () => {
    assert.isUndefined(payloadOf(undefined))
    assert.isUndefined(payloadOf({}))
    assert.isDefined(payloadOf({ a: null }))
  })

  it("is the same bytes for the same data in any order of keys, and the same data again", () => {
    const data = fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue(), { minKeys: 1 })
    fc.assert(
      fc.property(data, (data) => {
        const json = JSON.parse(JSON.stringify(data)) as Record<string, unknown>
        assert.strictEqual(textOf(shuffled(json) as Record<string, unknown>), textOf(json))
        assert.deepStrictEqual(JSON.parse(textOf(json)), json)
      })
    )
  })

  it("fits a body of 4096 bytes with the overhead of RFC 8188 up to 3993 bytes", () => {
    assert.strictEqual(payloadBytesMax + 86 + 1 + 16, 4096)
  })
})

describe("the depth to which a channel is cut", () => {
  it.for([
    [0, 0],
    [1, 0],
    [1_000, 0],
    [1_001, 1],
    [16_000, 1],
    [16_001, 2],
    [256_000, 2],
    [256_001, 3],
    [4_096_000, 3],
    [4_096_001, 4],
    [100_000_000, 4]
  ] as const)("for %i registrations is %i", ([registrations, depth]) => {
    assert.strictEqual(shardDepth(registrations), depth)
  })

  it("has at most 1,000 registrations per shard on average, up to 65,536 shards", () => {
    fc.assert(
      fc.property(fc.nat(1_000 * 16 ** 4), (registrations) => {
        const depth = shardDepth(registrations)
        assert.isAtMost(registrations / 16 ** depth, 1_000)
        // No deeper than needed: a small channel is one multi-get.
        if (depth > 0) assert.isAbove(registrations / 16 ** (depth - 1), 1_000)
      })
    )
  })
})
