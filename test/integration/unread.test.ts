// Output that nobody reads, or that has no room: `node src/main.ts | head -1`, a full disk.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { openSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "vitest"
import { call, until } from "../support/client.ts"
import { temporaryFolder } from "../support/folder.ts"
import { claimPort } from "../support/ports.ts"
import { settingsFile, sources } from "../support/service.ts"

/** Starts a service that prints to `stdout`; it must start, serve and stop. */
const serves = async (stdout: "pipe" | number) => {
  const folder = await temporaryFolder()
  const port = await claimPort()
  const env = {
    ...process.env,
    ...settingsFile(undefined),
    BELLCAST_PORT: String(port),
    BELLCAST_AUTH_POLICIES: "basicauth",
    BELLCAST_DATA_DIR: folder
  }
  const child = spawn(process.execPath, [join(sources, "src/main.ts")], {
    env,
    stdio: ["ignore", stdout, "inherit"]
  })
  const exited = once(child, "close")
  child.stdout?.destroy()
  const status = () =>
    call(`http://127.0.0.1:${port}/v1`, "GET", "/__lbheartbeat__").then(
      (answer) => answer.status,
      () => 0
    )
  try {
    await until(status, (now) => now === 200 || child.exitCode !== null)
    for (let i = 0; i < 20; i += 1) assert.equal(await status(), 200)
    assert.isNull(child.exitCode)
    child.kill("SIGTERM")
    assert.equal((await exited)[0], 0)
  } finally {
    child.kill("SIGKILL")
    await exited
  }
}

it("serves although nobody reads its first words to the end", { timeout: 90_000 }, () =>
  serves("pipe")
)

it(
  "serves although its log cannot be written, because the disk is full",
  {
    timeout: 90_000
  },
  () => serves(openSync("/dev/full", "w"))
)
