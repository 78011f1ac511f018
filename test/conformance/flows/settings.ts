// Contract 6, settings: gateways with settings of their own, and a start with wrong ones.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Api } from "../api.ts"
import type { Login } from "../logins/login.ts"
import { gateways, type Started, startGateways } from "../settings/gateways.ts"
import { run } from "../table.ts"
import { startOwn } from "../target.ts"

/** Gateways with settings, whose only policy is that of a login. */
export const testSettings = (login: Login): void => {
  let started: Started
  beforeAll(async () => {
    started = await startGateways(login)
  }, 120_000)
  afterAll(() => started[Symbol.asyncDispose]())

  for (const [name, , cases] of gateways)
    describe(name, () => run(cases, () => started.targetOf(name), login))

  it("does not know what is deployed without that file", async () => {
    const response = await new Api(started.targetOf("under load")).send({
      method: "GET",
      path: "/__version__",
      as: null
    })
    expect(response.status).toBe(404)
    expect(response.json.errno).toBe(111)
  })

  it("does not start with settings it cannot use, and names all of them", async () => {
    const { users } = started.targetOf("under load")
    const bad = {
      ...users.env,
      BELLCAST_BACKOFF: "soon",
      BELLCAST_EOS: "2026-13-40",
      BELLCAST_READONLY: "perhaps"
    }
    await expect(startOwn(started.natsUrl, { roles: "gateway", env: bad })).rejects.toThrow(
      /READONLY.*BACKOFF.*EOS/s
    )
  })
}
