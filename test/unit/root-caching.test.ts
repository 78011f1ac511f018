// Whether caches may keep the root of a read-only gateway, which names the caller.
import { Effect, Redacted } from "effect"
import { assert, describe, it } from "vitest"
import { cachingOf } from "#gateway/service/about.ts"
import { basicauth } from "#identity/policies/basicauth.ts"
import { proxy } from "#identity/policies/proxy.ts"

const noStore = { "Cache-Control": "no-cache, no-store" }
const pairs = basicauth("basicauth", "secret")

describe("the root of a read-only gateway", () => {
  it("is kept by the credentials in Authorization", () => {
    const { "Cache-Control": control, Vary } = cachingOf([pairs], 0)
    assert.deepEqual([control, Vary], ["max-age=86400", "Authorization"])
  })

  it("is not kept where a proxy names the caller in a header of its own", async () => {
    const settings = {
      userHeader: "x-forwarded-user",
      groupsHeader: "x-forwarded-groups",
      groupsSeparator: ",",
      secret: Redacted.make("a secret of the proxy, of thirty-two bytes")
    }
    const named = await Effect.runPromise(proxy("proxy", settings))
    assert.deepEqual(cachingOf([pairs, named], 0), noStore)
  })
})
