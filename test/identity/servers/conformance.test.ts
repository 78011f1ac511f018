// The whole contract with each policy as the only one of a service: by one gateway, and by two in
// turn. What needs gateways of its own: flows.test.ts.
import { afterAll, beforeAll, describe, it } from "vitest"
import { startNats } from "#test/nats.ts"
import { testPolicyOutage } from "../../conformance/flows/policy-outage.ts"
import { sendAny } from "../../conformance/fuzz.ts"
import { logins } from "../../conformance/logins/all.ts"
import type { Login } from "../../conformance/logins/login.ts"
import { sections } from "../../conformance/sections.ts"
import { run } from "../../conformance/table.ts"
import { type Running, startFor } from "../../conformance/target.ts"

const testContract = (login: Login, count: 1 | 2) => {
  const stack = new AsyncDisposableStack()
  let running: Running
  beforeAll(async () => {
    const nats = stack.use(await startNats())
    running = stack.use(await startFor(login, nats.url, count))
  })
  afterAll(() => stack.disposeAsync())

  // First: an issuer whose keys are known is needed for unknown ones only.
  if (count === 1) testPolicyOutage(login, () => running.target)

  for (const [name, cases] of sections)
    describe(name, () => run(cases, () => running.target, login))

  if (count === 1)
    it("responds to random requests as described", { timeout: 180_000 }, () =>
      sendAny(running.target, 2_000)
    )
}

for (const login of logins) {
  describe(`${login.name}, by one gateway`, () => testContract(login, 1))
  describe(`${login.name}, by two gateways`, () => testContract(login, 2))
}
