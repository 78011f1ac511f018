// Which policies end the openness of --development.
import { devNull } from "node:os"
import { assert, describe, it } from "@effect/vitest"
import { readSource } from "#settings/source.ts"

const found = (policies: string, ...args: ReadonlyArray<string>) => {
  const env = { BELLCAST_CONFIG: devNull, BELLCAST_AUTH_POLICIES: policies }
  const { found } = readSource(env, ["--development", ...args])
  return [...found.keys()].filter((name) => found.get(name)?.place === "--development")
}

describe("--development", () => {
  it("opens the service where anybody is a user", () => {
    const opened = found("")
    assert.includeMembers(opened, [
      "BELLCAST_AUTH_POLICIES",
      "BELLCAST_CHANNEL_WRITE_PRINCIPALS",
      "BELLCAST_ALLOW_LOOPBACK_ENDPOINTS",
      "BELLCAST_PUBLIC_METRICS",
      "BELLCAST_REQUESTS_PER_USER_PER_MINUTE_MAX"
    ])
    for (const policies of ["basicauth", " basicauth,basicauth-tests "])
      assert.sameMembers([...found(policies), "BELLCAST_AUTH_POLICIES"], opened, policies)
  })

  for (const policies of [
    "signed",
    "signed token",
    "basicauth openid",
    "basicauth,token",
    "oauth",
    "portier",
    "proxy",
    "acme=./acme.js",
    "basicauth=./acme.js",
    "basicauth acme=./acme.js"
  ])
    it(`opens nothing with the policies ${policies}`, () => {
      assert.deepEqual(found(policies), [])
    })
})
