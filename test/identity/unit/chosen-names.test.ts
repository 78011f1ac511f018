// Names and groups that callers choose themselves never make them somebody else.
import { Config, ConfigProvider, Effect } from "effect"
import { describe, expect, it } from "vitest"
import { proxy, proxySettings } from "#identity/policies/proxy.ts"
import { principalsOf, usableGroups, userFault, userNames } from "#identity/principals.ts"
import { knownAt } from "#identity/tokens/claims.ts"
import { identificationMillis } from "#identity/verdict.ts"

const nameOf = userNames("secret")
const idOfAnna = nameOf("anna@example.org")
const digits = idOfAnna.slice(-64)

const userAt = (claims: Readonly<Record<string, unknown>>, path: string): string | undefined => {
  const found = knownAt(claims, path, [])
  return found._tag === "Known" ? found.user : undefined
}

describe("a name like the HMAC of an address", () => {
  it("is nobody in any claim, and the digits alone are a user of their own", () => {
    for (const path of ["sub", "preferred_username"]) {
      expect(userAt({ [path]: idOfAnna }, path), path).toBeUndefined()
      expect(nameOf(userAt({ [path]: digits }, path)!), path).toBe(digits)
      expect(digits).not.toBe(idOfAnna)
    }
  })

  it("is no group either", () => {
    const chosen = usableGroups([idOfAnna, digits, "anna@example.org", "editor"])
    expect(principalsOf("openid:mal", "openid", chosen.map(nameOf)).slice(3)).toEqual([
      `group:openid:${digits}`,
      `group:openid:${idOfAnna}`,
      "group:openid:editor"
    ])
    expect(usableGroups([idOfAnna])).toEqual([])
  })
})

describe("an id", () => {
  it("of a number is that of its digits", () => {
    expect(userAt({ sub: 42 }, "sub")).toBe("42")
    expect(userAt({ sub: "42" }, "sub")).toBe("42")
  })

  it("is refused with the reason", () => {
    for (const wrong of [4.2, 2 ** 53, true, { id: 1 }, ["42"], null])
      expect(userFault(wrong), String(wrong)).toMatch(/^must be a string or a whole number/)
    expect(userFault(undefined)).toMatch(/^is missing/)
    for (const wrong of ["", "x".repeat(201)]) expect(userFault(wrong)).toMatch(/1 to 200 bytes/)
    expect(userFault("x".repeat(200))).toBeUndefined()
  })

  it("has no character that is not seen, which two users could differ in", () => {
    for (const hidden of [
      "\0",
      "\u00ad",
      "\u200b",
      "\u200d",
      "\u202e",
      "\u2028",
      "\u2029",
      "\ufeff"
    ])
      for (const name of [`${hidden}ann`, `a${hidden}nn`, `ann${hidden}`]) {
        expect(userFault(name), JSON.stringify(name)).toMatch(
          /^must have no control or format characters/
        )
        expect(usableGroups([name]), JSON.stringify(name)).toEqual([])
      }
    expect(userFault("\u{e0041}")).toMatch(/^must have no control or format/)
    expect(userFault("Zoë 7 \u4e2d")).toBeUndefined()
  })
})

describe("headers of a proxy", () => {
  const secret = "a secret of the proxy, of thirty-two bytes"
  const identified = (user: string) =>
    Effect.runPromise(
      Effect.gen(function* () {
        const settings = yield* Config.all(proxySettings("PROXY"))
        const policy = yield* proxy("proxy", settings)
        return yield* policy.identify({
          headers: {
            "x-forwarded-user": user,
            "x-forwarded-groups": "editor",
            "x-proxy-secret": secret
          },
          scheme: "",
          token: "",
          address: "",
          fromTrustedProxy: true,
          isRepeated: () => false,
          patienceMillis: identificationMillis
        })
      }).pipe(
        Effect.provide(
          ConfigProvider.layer(ConfigProvider.fromEnv({ env: { PROXY_SECRET: secret } }))
        )
      )
    )

  it("name no groups where no setting names the header with groups", async () => {
    expect(await identified("anna")).toMatchObject({ user: "anna", groups: [] })
  })

  it("name nobody by the HMAC of an address", async () => {
    expect(await identified(idOfAnna)).toMatchObject({ _tag: "Invalid" })
    expect(await identified(digits)).toMatchObject({ user: digits })
  })
})
