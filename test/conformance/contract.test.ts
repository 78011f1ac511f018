// The HTTP contract, from outside: every section against one server. TARGET_URL aims it at any; see target.ts.
import { afterAll, beforeAll, describe } from "vitest"
import { sections } from "./sections.ts"
import { run } from "./table.ts"
import { type Running, start } from "./target.ts"

let running: Running
beforeAll(async () => {
  running = await start(1)
}, 60_000)
afterAll(() => running[Symbol.asyncDispose]())

for (const [name, cases] of sections) describe(name, () => run(cases, () => running.target))
