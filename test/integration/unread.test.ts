// Whoever reads what the service prints may leave before all is said: `node src/main.ts | head -1`.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, it } from "vitest"
import { call, until } from "../support/client.ts"
import { freePort, settingsFile } from "../support/service.ts"

it("starts and serves although nobody reads its first words to the end", {
  timeout: 60_000
}, async () => {
  const folder = await mkdtemp(join(tmpdir(), "bellcast-unread-"))
  const port = await freePort()
  const env = {
    ...process.env,
    ...settingsFile(undefined),
    BELLCAST_PORT: String(port),
    BELLCAST_DATA_DIR: folder
  }
  const child = spawn(process.execPath, ["src/main.ts"], {
    env,
    stdio: ["ignore", "pipe", "inherit"]
  })
  const exited = once(child, "close")
  child.stdout.destroy()
  const status = () =>
    call(`http://127.0.0.1:${port}/v1`, "GET", "/__lbheartbeat__").then(
      (answer) => answer.status,
      () => 0
    )
  try {
    await until(status, (now) => now === 200 || child.exitCode !== null, 30_000)
    for (let i = 0; i < 20; i += 1) assert.equal(await status(), 200)
    assert.isNull(child.exitCode)
  } finally {
    child.kill("SIGTERM")
    await exited
    await rm(folder, { recursive: true })
  }
})
