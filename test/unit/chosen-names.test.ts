// Names and groups that callers choose themselves never make them somebody else.
import { Config, ConfigProvider, Effect } from "effect"
import { describe, expect, it } from "vitest"
import { userAt } from "#identity/policies/claims.ts"
import { proxy, proxySettings } from "#identity/policies/proxy.ts"
import { identificationMillis } from "#identity/policy.ts"
import { userNames } from "#identity/principals.ts"

const idOfAnna = userNames("secret")("anna@example.org")

describe("a name like the HMAC of an address", () => {
  it("is nobody in a claim that users choose, and somebody in `sub`", () => {
    const claims = { sub: idOfAnna, preferred_username: idOfAnna }
    expect(userAt(claims, "preferred_username")).toBeUndefined()
    expect(userAt(claims, "sub")).toBe(idOfAnna)
    expect(userAt({ preferred_username: "anna" }, "preferred_username")).toBe("anna")
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
  })
})
