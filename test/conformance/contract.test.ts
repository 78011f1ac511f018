// Tests every section of the HTTP contract against one server; see target.ts.
import { afterAll, beforeAll, describe } from "vitest"
import { sources } from "../support/service.ts"
import { basicauth } from "./logins/basicauth.ts"
import { sections } from "./sections.ts"
import { run } from "./table.ts"
import { type Running, start } from "./target.ts"

let running: Running
beforeAll(async () => {
  running = await start(1, basicauth, { program: sources })
})
afterAll(() => running[Symbol.asyncDispose]())

// Most of the time passes while the gateway waits for NATS, and NATS for the disk.
for (const [name, cases] of sections)
  describe.concurrent(name, () => run(cases, () => running.target))
