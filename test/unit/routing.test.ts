// Routing takes linear time, also for very long paths; no way leads to a console that is not
// served.
import { assert, describe, it } from "vitest"
import { withoutConsole } from "#gateway/console.ts"
import { endpoints } from "#gateway/endpoints.ts"
import { routeOf } from "#gateway/http/routing.ts"

describe("a path of very many slashes", () => {
  it.for([
    ["within it", `/v1/${"/".repeat(100_000)}x/`, `/v1/${"/".repeat(100_000)}x`],
    ["at its end", `/v1/x${"/".repeat(100_000)}`, "/v1/x"]
  ] as const)("%s leads where it should, soon", ([, path, to]) => {
    const began = performance.now()
    const route = routeOf(endpoints, path)
    assert.deepEqual(route, { kind: "redirect", why: "slash", to })
    assert.isBelow(performance.now() - began, 3_000)
  })
})

describe("the path of a console that is not served", () => {
  const kindOf = (path: string) => withoutConsole(routeOf(endpoints, path)).kind
  it.for([
    "/v1/console/",
    "/v1/%63onsole/",
    "/%761/console/",
    "/v1/./console/",
    "/v1/%2e/console/",
    "/v1/x/../console/",
    "/v1//console/?a"
  ])("is no redirect as %s", (path) => assert.equal(kindOf(path), "unknown"))

  it("is not taken for another that begins like it", () => {
    for (const path of ["/v1/consoles/", "/v1/x/console/", "/v1/console/../x/"])
      assert.equal(kindOf(path), "redirect", path)
  })
})
