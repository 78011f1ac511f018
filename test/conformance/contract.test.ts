// Tests every section of the HTTP contract against one server (see target.ts), or against two
// gateways that take turns: each must show what the other one wrote.
import { afterAll, beforeAll, describe } from "vitest"
import { sources } from "../support/service.ts"
import type { Target } from "./api.ts"
import { basicauth } from "./logins/basicauth.ts"
import { sections } from "./sections.ts"
import { run } from "./table.ts"
import { type Running, start } from "./target.ts"

let running: Running
beforeAll(async () => {
  running = await start(2, basicauth, { program: sources })
})
afterAll(() => running[Symbol.asyncDispose]())

// Most of the time passes while a gateway waits for NATS, and NATS for the disk. The requests of a
// case follow each other: those of other sections have turns of their own.
for (const [name, cases] of sections)
  describe.concurrent(name, () => {
    let target: Target
    beforeAll(async () => {
      target = await running.withTurns()
    })

    run(cases, () => target)
  })
