// Routing takes linear time, also for very long paths.
import { assert, describe, it } from "vitest"
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
