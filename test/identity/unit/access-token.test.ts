// Tokens of servers that publish: their form, and how their commands fold.
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { spanMillisOf } from "#cli/terminal/input.ts"
import {
  type AccessToken,
  type AccessTokenCommand,
  foldAccessToken,
  isCurrentToken,
  tokenChannelsFault,
  tokenNameFault
} from "#domain/access-token.ts"
import { hashOfToken, isOwnToken, tokenOf } from "#identity/policies/token.ts"

const bytes = fc.uint8Array({ minLength: 32, maxLength: 32 })

describe("a token", () => {
  it("has 58 letters and digits behind one prefix, whatever its bytes", () => {
    for (const each of [0, 255]) {
      const token = tokenOf(new Uint8Array(32).fill(each))
      assert.match(token, /^bellcast_[0-9A-Za-z]{49}$/)
      assert.isTrue(isOwnToken(token))
    }
    fc.assert(
      fc.property(bytes, bytes, (one, other) => {
        const same = Buffer.compare(one, other) === 0
        assert.strictEqual(tokenOf(one) === tokenOf(other), same)
        assert.match(tokenOf(one), /^bellcast_[0-9A-Za-z]{49}$/)
        assert.isTrue(isOwnToken(tokenOf(one)))
      })
    )
  })

  it("of known bytes is known", () => {
    // Computed with Python's int.from_bytes and binascii.crc32.
    const token = tokenOf(Uint8Array.from({ length: 32 }, (_, i) => i))
    assert.strictEqual(token, "bellcast_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf1Yo7hP")
    assert.match(hashOfToken(token), /^[A-Za-z0-9_-]{43}$/)
  })

  it("with one wrong character is none", () => {
    const digit = fc.constantFrom(
      ..."0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    )
    fc.assert(
      fc.property(bytes, fc.integer({ min: 9, max: 57 }), digit, (random, at, wrong) => {
        const token = tokenOf(random)
        const typed = token.slice(0, at) + wrong + token.slice(at + 1)
        assert.strictEqual(isOwnToken(typed), typed === token)
      })
    )
    const token = tokenOf(new Uint8Array(32))
    for (const text of [
      "",
      "bellcast_",
      token.slice(0, -1),
      `${token}0`,
      `${token}\n`,
      ` ${token}`
    ])
      assert.isFalse(isOwnToken(text), text)
  })
})

type Rights = { readonly users?: true; readonly operator?: true }
const put = (
  channels: ReadonlyArray<string> = ["news*"],
  rights: Rights = {}
): AccessTokenCommand => ({
  type: "token.put",
  hash: "h",
  channels,
  ...rights,
  expiresAt: 100,
  at: 10
})
const drop: AccessTokenCommand = { type: "token.delete", hash: "h", at: 20 }
const made: AccessToken = {
  v: 1,
  seq: 3,
  name: "billing",
  channels: ["news*"],
  createdAt: 10,
  expiresAt: 100
}

describe("the commands of a token", () => {
  it("make it once and revoke it for ever, however often they are folded", () => {
    const { token } = foldAccessToken(undefined, put(), "billing", 3)
    assert.deepStrictEqual(token, made)
    assert.strictEqual(foldAccessToken(token, put(["*"]), "billing", 3).token, token)
    assert.deepStrictEqual(foldAccessToken(token, put(["*"]), "billing", 4), {
      token,
      reason: "the token was made before"
    })
    const revoked = { ...made, seq: 5, revokedAt: 20 }
    assert.deepStrictEqual(foldAccessToken(token, drop, "billing", 5), { token: revoked })
    assert.strictEqual(foldAccessToken(revoked, put(), "billing", 3).token, revoked)
    assert.isString(foldAccessToken(revoked, put(), "billing", 6).reason)
    assert.deepStrictEqual(foldAccessToken(revoked, { ...drop, at: 30 }, "billing", 7), {
      token: { ...revoked, seq: 7 }
    })
  })

  it("are rejected for another name, without one, and with impossible channels", () => {
    assert.deepStrictEqual(foldAccessToken(made, drop, "other", 5), {
      token: made,
      reason: "there is no such token"
    })
    assert.isString(foldAccessToken(undefined, drop, "billing", 5).reason)
    assert.isString(foldAccessToken(undefined, put(), "a b", 5).reason)
    assert.isString(foldAccessToken(undefined, put([]), "billing", 5).reason)
    for (const wrong of ["", "a/b", "x".repeat(256), "\ud800"])
      assert.isString(tokenChannelsFault(["news", wrong]), wrong)
    assert.isUndefined(tokenChannelsFault(["*", "ü".repeat(127)]))
    for (const right of [{ users: true }, { operator: true }] as const) {
      const { token } = foldAccessToken(undefined, put([], right), "billing", 5)
      assert.deepInclude(token, { channels: [], ...right })
    }
    for (const wrong of ["", "a.b", "a@example.org", "x".repeat(65), "*"])
      assert.isString(tokenNameFault(wrong), wrong)
  })

  it("end its validity at the millisecond", () => {
    assert.isTrue(isCurrentToken(made, 99))
    assert.isFalse(isCurrentToken(made, 100))
    assert.isFalse(isCurrentToken({ ...made, revokedAt: 20 }, 20))
    const { expiresAt: _, ...forever } = made
    assert.isTrue(isCurrentToken(forever, Number.MAX_SAFE_INTEGER))
  })
})

it("spans of time have a number and a unit", () => {
  assert.strictEqual(spanMillisOf("90d"), 90 * 24 * 3_600_000)
  assert.strictEqual(spanMillisOf("1s"), 1_000)
  for (const wrong of ["", "0d", "90", "d", "-1d", "1.5h", "1y", "9999999999d", " 1d"])
    assert.isUndefined(spanMillisOf(wrong), wrong)
})
