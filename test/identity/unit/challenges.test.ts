// The challenges of a 401: each once, and with the reasons of those that refused.
import { assert, describe, it } from "vitest"
import { challengesOf } from "#gateway/pipeline/checks.ts"
import { invalidBecause, invalidToken } from "#identity/verdict.ts"

const bearer = 'Bearer realm="Realm"'
const policies = [
  { name: "oauth", challenge: bearer },
  { name: "openid", challenge: bearer },
  { name: "basicauth", challenge: 'Basic realm="Realm"' },
  { name: "token", challenge: bearer }
]

describe("challenges", () => {
  it("are one for all policies with the same", () => {
    assert.equal(challengesOf(policies, new Map()), `${bearer}, Basic realm="Realm"`)
  })

  it("say why a token was refused, each reason once, and nothing beside it", () => {
    const over = invalidBecause("exp is over")
    const said = `${bearer}, error="invalid_token", error_description="exp is over"`
    const basic = 'Basic realm="Realm"'
    assert.equal(challengesOf(policies, new Map([["openid", over]])), `${said}, ${basic}`)
    const both = new Map([
      ["oauth", invalidToken],
      ["openid", over],
      ["token", invalidToken]
    ])
    assert.equal(
      challengesOf(policies, both),
      `${bearer}, error="invalid_token", ${said}, ${basic}`
    )
  })
})
