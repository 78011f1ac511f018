// A process whose event loop stands still ends itself; one that was frozen goes on.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { readdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { until } from "../support/client.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { elapsed, unchanged } from "../support/quiet.ts"
import {
  type Service,
  secretEnvironment,
  settingsFile,
  sources,
  startService
} from "../support/service.ts"

const preload = new URL("../support/stand-still-on-signal.ts", import.meta.url)
/** Longer than the minute, after which a process that stands still ends. */
const frozenMillis = 90_000

describe.concurrent("a process", { timeout: 240_000 }, () => {
  const stack = new AsyncDisposableStack()
  let nats: TestNats

  beforeAll(async () => {
    nats = stack.use(await startNats())
  })
  afterAll(() => stack.disposeAsync())

  const threads = async ({ process }: Service) => {
    const folder = `/proc/${process.pid}/task`
    const names = (await readdir(folder)).map((id) => readFile(`${folder}/${id}/comm`, "utf8"))
    return (await Promise.all(names)).map((name) => name.trim())
  }

  /** A service that is ready just now, and watched. */
  const start = async () => {
    const env = { NODE_OPTIONS: `--import=${preload}` }
    const service = await startService({ natsUrl: nats.url, env })
    assert.include(await threads(service), "standstill")
    return service
  }

  it("whose event loop stands still after its start says so, and ends in a minute", async () => {
    // Not `using`: that fails where a service has written to stderr.
    const service = await start()
    const closed = once(service.process, "close")
    const begin = performance.now()
    service.process.kill("SIGUSR2")
    assert.deepEqual(await closed, [null, "SIGKILL"])
    const seconds = (performance.now() - begin) / 1_000
    assert.isAbove(seconds, 50)
    assert.isBelow(seconds, 90)
    const lines = service.output().trim().split("\n")
    assert.match(JSON.parse(lines.at(-1)!).msg, /^the event loop stood still for a minute/)
  })

  it("that another one has started to deliver gives its name in that line", async () => {
    const place = "--delivery-process=2/2/group"
    const args = [`--import=${preload}`, join(sources, "src/main.ts"), place]
    const child = spawn(process.execPath, args, {
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      env: {
        ...process.env,
        ...secretEnvironment,
        ...settingsFile(undefined),
        BELLCAST_NATS_URL: nats.url,
        BELLCAST_ROLES: "delivery",
        BELLCAST_METRICS_ADDRESS: "off"
      }
    })
    let output = ""
    for (const stream of [child.stdout!, child.stderr!])
      stream.setEncoding("utf8").on("data", (text: string) => {
        output += text
      })
    const closed = once(child, "close")
    try {
      await until(
        async () => output,
        (text) => text.includes('"msg":"ready"'),
        30_000
      )
      child.kill("SIGUSR2")
      assert.deepEqual(await closed, [null, "SIGKILL"])
      const line = JSON.parse(output.trim().split("\n").at(-1)!)
      assert.match(line.msg, /^the event loop stood still for a minute/)
      assert.equal(line.process, "delivery-2")
    } finally {
      child.kill("SIGKILL")
    }
  })

  it("that was frozen for longer goes on", async () => {
    await using service = await start()
    service.process.kill("SIGSTOP")
    await elapsed(frozenMillis)
    service.process.kill("SIGCONT")
    // Three waits of the watcher.
    assert.isNull(await unchanged(() => service.process.signalCode, 15_000))
    assert.strictEqual((await fetch(`${service.url}/__lbheartbeat__`)).status, 200)
    assert.strictEqual(await service.stop(), 0)
  })
})
