// Tests the contract against two gateways that take turns: each must show what the other one wrote.
import { afterAll, beforeAll, describe } from "vitest"
import { sections } from "./sections.ts"
import { run } from "./table.ts"
import { type Running, start, targetUrl } from "./target.ts"

describe.skipIf(targetUrl !== undefined)("two gateways", () => {
  let running: Running
  beforeAll(async () => {
    running = await start(2)
  }, 60_000)
  afterAll(() => running[Symbol.asyncDispose]())

  for (const [name, cases] of sections) describe(name, () => run(cases, () => running.target))
})
