// The search for secrets finds each form of each secret, wherever it stands.
import { createHash } from "node:crypto"
import { assert, describe, it } from "vitest"
import { secretsIn } from "#test/leaks.ts"

const secret = 'tök"en+7/=?9 of Anna'
const address = "Zoe@example.org"
const base64 = (text: string) => Buffer.from(text).toString("base64")

describe("the search for secrets", () => {
  it.for([
    ["as it is", secret],
    ["in another case", secret.toUpperCase()],
    ["as the bytes of a file", Buffer.from(`x${secret}`).toString("latin1")],
    ["in a query", `?code=${encodeURIComponent(secret)}&state=1`],
    ["in a query, in lower case", `?code=${encodeURIComponent(secret).toLowerCase()}`],
    ["in a query in a query", `?to=${encodeURIComponent(`/?code=${encodeURIComponent(secret)}`)}`],
    ["in a form", new URLSearchParams({ code: secret }).toString()],
    ["in JSON", JSON.stringify({ secret })],
    ["in JSON in JSON", JSON.stringify(JSON.stringify({ secret }))],
    ["in base64", base64(secret)],
    ["in base64, behind one byte", base64(`:${secret}:x`)],
    ["in base64, behind two bytes", base64(`::${secret}`)],
    ["in base64url", Buffer.from(`user:${secret}`).toString("base64url")],
    ["in hexadecimal", Buffer.from(secret).toString("hex")]
  ])("finds one %s", ([, text]) => {
    const found = secretsIn(
      new Map([
        ["log", `{"msg":"${text}"}`],
        ["audit", "nothing"]
      ]),
      ["another secret", secret]
    )
    assert.lengthOf(found, 1)
    assert.match(found[0]!, /^log: tök/)
  })

  it("finds a mail address, and hashes of it that anybody can compute", () => {
    const hash = createHash("sha256").update(address.toLowerCase())
    for (const text of [`mailto:${address.toLowerCase()}`, hash.digest("hex")])
      assert.lengthOf(secretsIn(new Map([["log", text]]), [address]), 1)
  })

  it("finds nothing where there is nothing, and seeks no texts that are too short", () => {
    assert.deepEqual(secretsIn(new Map([["log", '{"msg":"ready"}']]), [secret, address]), [])
    assert.throws(() => secretsIn(new Map(), ["short"]), /too short/)
  })
})
