// The whole contract with each policy as the only one of a service: by one gateway, by two in turn,
// and by gateways with settings of their own.
import { afterAll, beforeAll, describe, it } from "vitest"
import { sendAny } from "../conformance/fuzz.ts"
import { logins } from "../conformance/logins/all.ts"
import type { Login } from "../conformance/logins/login.ts"
import { sections } from "../conformance/sections.ts"
import { gateways, type Started, startGateways } from "../conformance/settings/gateways.ts"
import { run } from "../conformance/table.ts"
import { type Running, startFor } from "../conformance/target.ts"
import { startNats } from "../support/nats.ts"

const testContract = (login: Login, count: 1 | 2) => {
  const stack = new AsyncDisposableStack()
  let running: Running
  beforeAll(async () => {
    const nats = stack.use(await startNats())
    running = stack.use(await startFor(login, nats.url, count))
  })
  afterAll(() => stack.disposeAsync())

  for (const [name, cases] of sections)
    describe(name, () => run(cases, () => running.target, login))

  if (count === 1)
    it("responds to random requests as described", { timeout: 180_000 }, () =>
      sendAny(running.target, 2_000)
    )
}

const testSettings = (login: Login) => {
  let started: Started
  beforeAll(async () => {
    started = await startGateways(login)
  })
  afterAll(() => started[Symbol.asyncDispose]())

  for (const [name, , cases] of gateways)
    describe(name, () => run(cases, () => started.targetOf(name), login))
}

for (const login of logins) {
  describe(`${login.name}, by one gateway`, () => testContract(login, 1))
  describe(`${login.name}, by two gateways`, () => testContract(login, 2))
  describe(`${login.name}, by gateways with settings`, () => testSettings(login))
}
