// Identification by basic auth, with the contract's test vectors, and pseudonyms.
import { createHmac } from "node:crypto"
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { textHmac } from "#basics/hmac.ts"
import { credentialsOf } from "#identity/identity.ts"
import { basicIds, pairOf } from "#identity/policies/basicauth.ts"
import { pseudonyms } from "#identity/principals.ts"

const pairIn = (authorization: string | undefined) => {
  const headers = { authorization }
  const asking = {
    headers,
    received: headers,
    address: "",
    fromTrustedProxy: false,
    isRepeated: () => false
  }
  const { scheme, token } = credentialsOf(asking)
  return pairOf(scheme, token)
}

const encoded = (text: string | Buffer) => `Basic ${Buffer.from(text as string).toString("base64")}`

describe("basic auth", () => {
  for (const [secret, credentials, id] of [
    ["", "mat:secret", "8a931a10fc88ab2f6d1cc02a07d3a81b5d4768f6f13e85c5d8d4180419acb1b4"],
    [
      "0123456789abcdef0123456789abcdef",
      "mat:secret",
      "671ab4b3f380624f644086a9718a2e13a73765deaef9d2e660b7f1300c9a1160"
    ],
    [
      "0123456789abcdef0123456789abcdef",
      "bob:",
      "61bc8d8801a5e382dba4630cc329e549abab3f5f2e262f9219724292109e2df6"
    ]
  ] as const) {
    it(`makes the id of ${credentials} with the secret "${secret}"`, () => {
      assert.strictEqual(basicIds(secret)(credentials), id)
    })
  }

  it("finds every pair that a client can send", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "binary", minLength: 1 }),
        fc.string({ unit: "binary" }),
        (user, password) => {
          fc.pre(!user.includes(":") && user.isWellFormed() && password.isWellFormed())
          assert.strictEqual(pairIn(encoded(`${user}:${password}`)), `${user}:${password}`)
        }
      )
    )
  })

  it("finds nobody in anything else", () => {
    for (const header of [
      undefined,
      "",
      "Basic",
      "Basic ",
      "Bearer abc",
      encoded(":x"),
      encoded("x"),
      "Basic ***",
      `${encoded("a:b")} c`
    ]) {
      assert.isUndefined(pairIn(header), header)
    }
  })
})

it("keys hashes as RFC 2104 does, whatever the key and the text", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: "binary", maxLength: 200 }),
      fc.string({ unit: "binary" }),
      (secret, text) => {
        assert.strictEqual(
          textHmac(secret)(text, "base64"),
          createHmac("sha256", secret).update(text, "utf8").digest("base64")
        )
      }
    )
  )
})

describe("a pseudonym", () => {
  const userToken = (user: string, secret: string) => pseudonyms(secret)(user)

  it("is 22 characters that are safe in subjects, and differs by user and by secret", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (a, b) => {
        assert.match(userToken(a, "secret"), /^[A-Za-z0-9_-]{22}$/)
        if (a !== b) assert.notStrictEqual(userToken(a, "secret"), userToken(b, "secret"))
        assert.notStrictEqual(userToken(a, "secret"), userToken(a, "other"))
      })
    )
  })

  it("of a verified user is in no id that a name and a password make", () => {
    const id = basicIds("secret")("openid:alice")
    const pseudonymIn = Buffer.from(id, "hex").toString("base64url").slice(0, 22)
    const hmac = textHmac("secret")("openid:alice", "base64url")
    assert.strictEqual(hmac.slice(0, 22), pseudonymIn)
    assert.notStrictEqual(userToken("openid:alice", "secret"), pseudonymIn)
  })
})
