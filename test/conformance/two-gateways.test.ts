// Tests the contract against two gateways that take turns: each must show what the other one wrote.
// A case of one request reaches only one of them, and a refusal of what the request itself says
// depends on nothing that was written: contract.test.ts has these.
import { afterAll, beforeAll, describe } from "vitest"
import type { Target } from "./api.ts"
import { sections } from "./sections.ts"
import { type Case, run } from "./table.ts"
import { type Running, start, targetUrl } from "./target.ts"

/** Refusals of a request for what it says itself: its form, its size or its credentials. */
const refusals = new Set([400, 401, 413, 415])
const dependsOnWrites = ({ also, expected, given }: Case) =>
  (given !== undefined || also !== undefined) &&
  (typeof expected === "function" || !refusals.has(expected.status))
const chosen = sections
  .map(([name, cases]) => [name, cases.filter(dependsOnWrites)] as const)
  .filter(([, cases]) => cases.length > 0)

describe.skipIf(targetUrl !== undefined)("two gateways", () => {
  let running: Running
  beforeAll(async () => {
    running = await start(2)
  })
  afterAll(() => running[Symbol.asyncDispose]())

  // The requests of a case follow each other: those of other sections have turns of their own.
  for (const [name, cases] of chosen)
    describe.concurrent(name, () => {
      let target: Target
      beforeAll(async () => {
        target = await running.withTurns()
      })

      run(cases, () => target)
    })
})
