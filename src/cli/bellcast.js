#!/usr/bin/env node
// The command `bellcast`, as `bin` of package.json names it. Plain JavaScript that Node 16 reads:
// Node 22.19 and later run the .ts files beside it as they are. An older one starts the Node that
// `make install` put into the checkout, or says what to do.
import { spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"

const main = new URL("./main.ts", import.meta.url)
const newer = fileURLToPath(new URL("../../.tools/node_modules/node/bin/node", import.meta.url))
const [major, minor] = process.versions.node.split(".").map(Number)

const startNewer = () => {
  const child = spawn(newer, [fileURLToPath(main), ...process.argv.slice(2)], { stdio: "inherit" })
  // A terminal sends Ctrl-C to both, and the child decides when to end.
  process.on("SIGINT", () => {})
  for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal))
  child.once("exit", (code) => process.exit(code === null ? 1 : code))
}

if (major > 22 || (major === 22 && minor >= 19)) void import(main.href)
else if (existsSync(newer)) startNewer()
else {
  console.error(
    `bellcast: Node ${process.versions.node} is too old: 22.19 or later is needed. ` +
      "In a checkout, `make install` fetches it"
  )
  process.exitCode = 1
}
