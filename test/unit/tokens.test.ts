// Names as subject tokens and bucket keys, and the hash tree that cuts a channel into shards.
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import {
  channelToken,
  decodeToken,
  isChannelToken,
  originToken,
  shardPath,
  shardsAt,
  type UserToken
} from "#streams/tokens.ts"

const text = fc.oneof(
  fc.string({ unit: "binary", minLength: 1 }),
  fc.string({
    unit: fc.constantFrom(
      ".",
      " ",
      "*",
      ">",
      "=",
      "/",
      "\0",
      "é",
      "漢",
      "🔔",
      "\u{10ffff}",
      "\u2028",
      "a",
      "-",
      "_"
    ),
    minLength: 1
  })
)
const base64url = fc.constantFrom(
  ..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
)
const userToken = fc
  .string({ unit: base64url, minLength: 22, maxLength: 22 })
  .map((token) => token as UserToken)

describe("the token of a channel", () => {
  it("is written as the subjects of the documentation show it", () => {
    assert.strictEqual(channelToken("news eu.1"), "news=20eu=2E1")
    assert.strictEqual(channelToken("a b*c>d=e"), "a=20b=2Ac=3Ed=3De")
    assert.strictEqual(channelToken("🔔"), "=F0=9F=94=94")
    assert.strictEqual(originToken("fcm.googleapis.com"), "fcm=2Egoogleapis=2Ecom")
  })

  it("gives back any text, byte for byte", () => {
    fc.assert(
      fc.property(text, (name) => {
        assert.strictEqual(decodeToken(channelToken(name)), name)
      }),
      { numRuns: 2_000, examples: [["\ufeffnews"]] }
    )
  })

  it("holds only characters that NATS and its buckets take, at most three a byte", () => {
    fc.assert(
      fc.property(text, (name) => {
        const token = channelToken(name)
        assert.match(token, /^[-_=A-Za-z0-9]+$/)
        assert.isAtMost(token.length, 3 * Buffer.byteLength(name))
      })
    )
  })

  it("differs for different names", () => {
    fc.assert(
      fc.property(text, text, (a, b) =>
        assert.strictEqual(channelToken(a) === channelToken(b), a === b)
      )
    )
  })

  it.for([
    "",
    "=",
    "=2",
    "=2e",
    "=G0",
    "=ZZ",
    "=41",
    "a.b",
    "a b",
    "*",
    ">",
    "=FF",
    "=C3",
    "=ED=A0=80",
    "=C0=AE",
    "é",
    "news=2",
    "=-1",
    "= 1"
  ])("is not %j, which no text encodes to", (token) => {
    assert.isUndefined(decodeToken(token))
  })

  it("is that of an id which a path of the API can name: 1 to 255 bytes without a slash", () => {
    for (const id of ["a", "news eu", "x".repeat(255), "é".repeat(127)])
      assert.isTrue(isChannelToken(channelToken(id)), id)
    for (const id of ["", "news/eu", "/", "x".repeat(256), "é".repeat(128)])
      assert.isFalse(isChannelToken(channelToken(id)), id)
    for (const token of [undefined, "a b", "=20=2f"]) assert.isFalse(isChannelToken(token))
  })

  it("is decoded only when the text encodes to exactly this token", () => {
    const almost = fc.string({ unit: fc.constantFrom(..."=0123456789ABCDEFabcdefxyz.") })
    fc.assert(
      fc.property(almost, (token) => {
        const decoded = decodeToken(token)
        if (decoded !== undefined) assert.strictEqual(channelToken(decoded), token)
      }),
      { numRuns: 2_000 }
    )
  })
})

describe("the place of a user in a channel", () => {
  it("is the first 16 bits of the token, as four hexadecimal tokens", () => {
    assert.strictEqual(shardPath("AAAAxxxxxxxxxxxxxxxxxx" as UserToken), "0.0.0.0")
    assert.strictEqual(shardPath("____xxxxxxxxxxxxxxxxxx" as UserToken), "f.f.f.f")
    // base64url of the bytes 0x12 0xab
    assert.strictEqual(
      shardPath(`${Buffer.from([0x12, 0xab, 0, 0]).toString("base64url")}xxxx` as UserToken),
      "1.2.a.b"
    )
    fc.assert(
      fc.property(userToken, (user) => assert.match(shardPath(user), /^[0-9a-f](\.[0-9a-f]){3}$/))
    )
  })

  it("agrees with the bytes that the token was made of", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 16, maxLength: 16 }), (bytes) => {
        const token = Buffer.from(bytes).toString("base64url") as UserToken
        assert.strictEqual(
          shardPath(token).replaceAll(".", ""),
          Buffer.from(bytes.slice(0, 2)).toString("hex")
        )
      })
    )
  })

  it("falls evenly over the shards of every depth", () => {
    // Weyl sequences in place of chance: the same tokens on every run.
    const users = Array.from({ length: 65_536 }, (_, i) => {
      const bytes = Buffer.alloc(16)
      bytes.writeUInt32BE(Math.imul(i, 0x9e3779b1) >>> 0)
      return bytes.toString("base64url") as UserToken
    })
    for (const depth of [1, 2]) {
      const counts = new Map<string, number>()
      for (const user of users) {
        const shard = shardPath(user).slice(0, 2 * depth - 1)
        counts.set(shard, (counts.get(shard) ?? 0) + 1)
      }
      const fair = users.length / 16 ** depth
      assert.strictEqual(counts.size, 16 ** depth)
      for (const [shard, count] of counts)
        assert.isTrue(Math.abs(count - fair) < fair / 4, `${shard}: ${count} of ${fair}`)
    }
  })
})

describe("the shards of a channel", () => {
  it.for([1, 2, 3, 4])("at depth %i are 16 to the power of it, all different, sorted", (depth) => {
    const shards = shardsAt(depth)
    assert.strictEqual(shards.length, 16 ** depth)
    assert.strictEqual(new Set(shards).size, shards.length)
    assert.deepStrictEqual([...shards].sort(), [...shards])
  })

  it("at depth 0 are the one that holds everybody", () => {
    assert.deepStrictEqual(shardsAt(0), ["all"])
  })

  it("hold every user exactly once at every depth", () => {
    const shards = [1, 2, 3].map(shardsAt)
    fc.assert(
      fc.property(userToken, (user) => {
        const path = `${shardPath(user)}.`
        for (const prefixes of shards)
          assert.strictEqual(prefixes.filter((prefix) => path.startsWith(`${prefix}.`)).length, 1)
      })
    )
  })
})
