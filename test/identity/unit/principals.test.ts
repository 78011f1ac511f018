// Principals: no mail address in them, and none of one user for another.
import { describe, expect, it } from "vitest"
import { basicIds, pairOf } from "#identity/policies/basicauth.ts"
import { principalNames, userNames } from "#identity/principals.ts"

describe("a mail address", () => {
  const nameOf = userNames("secret")
  const principalOf = principalNames("secret")

  it("has one HMAC, whatever the case of A to Z, and shares it with no other letters", () => {
    expect(nameOf("Mark@Example.org")).toBe(nameOf("mark@example.org"))
    // The Kelvin sign, whose lower case is k.
    expect(nameOf("mar\u212a@example.org")).not.toBe(nameOf("mark@example.org"))
  })

  it("shares its HMAC with other spellings of its domain, and with no other text", () => {
    const anna = nameOf("anna@example.org")
    expect(nameOf("anna@exa\u00admple.org")).toBe(anna)
    expect(nameOf("anna@b\u00fccher.example")).toBe(nameOf("anna@xn--bcher-kva.example"))
    for (const end of ["/x", "?x", "#x", "\\x", "/\u00e9", "%2e", ".", ":443"])
      expect(nameOf(`anna@example.org${end}`), end).not.toBe(anna)
    expect(nameOf("anna@ex%61mple.org")).not.toBe(anna)
  })

  it("is none where a number follows the @, and then it is one user a spelling", () => {
    const numbers = ["8", "08", "010", "0x8", "0.8", "0.0.0.8", "\uff18"]
    expect(new Set(numbers.map((number) => nameOf(`bob@${number}`))).size).toBe(numbers.length)
  })

  it("has an HMAC that no user of basic auth can make by a name and a password", () => {
    const address = "anna@example.org"
    const idOf = basicIds("secret")
    for (const text of [address, `mail:${address}`, `portier:${address}`])
      expect(idOf(text)).not.toBe(nameOf(address))
    // The key is the HMAC of a text without a colon, and credentials have one.
    const key = idOf("bellcast mail address")
    expect(`@${basicIds(key)(address)}`).toBe(nameOf(address))
    expect(pairOf("basic", btoa("bellcast mail address"))).toBeUndefined()
  })

  it("is replaced in users and in groups", () => {
    const hash = nameOf("anna@example.org")
    expect(hash).toMatch(/^@[0-9a-f]{64}$/)
    expect(principalOf("oauth:anna@example.org")).toBe(`oauth:${hash}`)
    expect(principalOf("group:oauth:anna@example.org")).toBe(`group:oauth:${hash}`)
    // As GET /v1/ shows it to its user.
    expect(principalOf(`oauth:${hash}`)).toBe(`oauth:${hash}`)
    for (const other of ["system.Everyone", "oauth:anna", "group:oauth:a:b", "anna@example.org"])
      expect(principalOf(other)).toBe(other)
  })
})
