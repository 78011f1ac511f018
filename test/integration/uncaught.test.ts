// An error that nobody caught ends the process, but not what it has in hand; a log that cannot be
// written ends nothing.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { openSync } from "node:fs"
import { writeFile } from "node:fs/promises"
import { connect } from "node:net"
import { join } from "node:path"
import { assert, it } from "vitest"
import { basic, call, until } from "../support/client.ts"
import { temporaryFolder } from "../support/folder.ts"
import { startNats } from "../support/nats.ts"
import {
  freePort,
  mainFile,
  secretEnvironment,
  settingsFile,
  startService
} from "../support/service.ts"

it("logs an error that nobody caught, finishes the request in hand, and exits with 1", {
  timeout: 60_000
}, async () => {
  await using nats = await startNats()
  const folder = await temporaryFolder()
  const planted = join(folder, "throws.mjs")
  await writeFile(planted, 'process.on("SIGUSR2", () => { throw new Error("planted") })')
  await using service = await startService({
    natsUrl: nats.url,
    env: { NODE_OPTIONS: `--import=${planted}` }
  })
  const body = '{"data":{"a":1}}'
  const head = [
    "POST /v1/channels/news HTTP/1.1",
    "Host: a",
    `Authorization: ${basic("publisher")}`,
    "Content-Type: application/json",
    `Content-Length: ${body.length}`,
    "Expect: 100-continue"
  ]
  const socket = connect(service.port, "127.0.0.1").setEncoding("utf8")
  let answer = ""
  socket.on("data", (text: string) => {
    answer += text
  })
  socket.write(`${head.join("\r\n")}\r\n\r\n`)
  await until(
    async () => answer,
    (text) => text.includes("100 Continue")
  )
  const exited = once(service.process, "close")
  service.process.kill("SIGUSR2")
  await until(
    async () => service.output(),
    (text) => text.includes('"msg":"stopping"')
  )
  socket.write(body)
  assert.equal((await exited)[0], 1)
  assert.match(answer, /HTTP\/1\.1 202 /)
  assert.match(service.output(), /"level":60.*"message":"planted"/)
})

it("serves while its log cannot be written, because the disk is full", {
  timeout: 60_000
}, async () => {
  await using nats = await startNats()
  const port = await freePort()
  const env = {
    ...process.env,
    ...settingsFile(undefined),
    ...secretEnvironment,
    BELLCAST_NATS_URL: nats.url,
    BELLCAST_PORT: String(port)
  }
  const full = openSync("/dev/full", "w")
  const child = spawn(process.execPath, [mainFile], { env, stdio: ["ignore", full, full] })
  const exited = once(child, "close")
  const status = () =>
    call(`http://127.0.0.1:${port}/v1`, "GET", "/__lbheartbeat__").then(
      (answer) => answer.status,
      () => 0
    )
  try {
    await until(status, (now) => now === 200 || child.exitCode !== null, 30_000)
    for (let i = 0; i < 20; i += 1) assert.equal(await status(), 200)
    child.kill("SIGTERM")
    assert.equal((await exited)[0], 0)
  } finally {
    child.kill("SIGKILL")
  }
})
