// The base of other tests: a server that keeps its data and address when it is killed, and one that
// ends with its parent.
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { jetstream, jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { Effect } from "effect"
import { launch } from "#embedded/launch.ts"
import { locateNatsServer } from "#embedded/program/locate.ts"
import { until } from "#test/client.ts"
import { temporaryFolder } from "#test/folder.ts"
import { startNats } from "#test/nats.ts"
import { claimPort } from "#test/ports.ts"
import { unchanged } from "#test/quiet.ts"

describe("startNats", () => {
  it("keeps what it acknowledged, and its address, over SIGKILL and restart", async () => {
    await using nats = await startNats()
    const before = await connect({ servers: nats.url, reconnect: false })
    const jsm = await jetstreamManager(before)
    await jsm.streams.add({ name: "KEPT", subjects: ["kept.>"] })
    const { seq } = await jetstream(before).publish("kept.one", "still here")
    await nats.kill()
    await before.closed()
    await nats.restart()
    const after = await connect({ servers: nats.url })
    const message = await (await jetstreamManager(after)).streams.getMessage("KEPT", { seq })
    await after.close()
    assert.strictEqual(message?.string(), "still here")
  })
})

describe("the embedded server", () => {
  const inFolder = async (work: (folder: string, binary: string) => Promise<void>) => {
    const folder = await temporaryFolder()
    const binary = await Effect.runPromise(locateNatsServer)
    await work(folder, binary)
  }

  const module = new URL("../../src/embedded/launch.ts", import.meta.url).href
  /** Another process that runs a server, prints the server's pid, and waits. */
  const parentOf = async (
    folder: string,
    binary: string
  ): Promise<{ readonly parent: ChildProcess; readonly pid: number }> => {
    const script = `const { launch } = await import(${JSON.stringify(module)})
      const server = await launch(${JSON.stringify({ folder, binary })})
      process.on("SIGINT", () => process.exit(0))
      console.log(server.pid)`
    const parent = spawn(process.execPath, ["--input-type=module", "-e", script], {
      detached: true,
      stdio: ["ignore", "pipe", "inherit"]
    })
    const [line] = await once(parent.stdout!, "data")
    return { parent, pid: Number(line) }
  }

  const runs = (pid: number) => {
    try {
      return process.kill(pid, 0)
    } catch {
      return false
    }
  }

  it("dies with a parent that is killed, and its folder can be used at once", () =>
    inFolder(async (folder, binary) => {
      const { parent, pid } = await parentOf(folder, binary)
      parent.kill("SIGKILL")
      await using _next = { [Symbol.asyncDispose]: (await launch({ folder, binary })).stop }
      assert.isFalse(runs(pid))
    }))

  it("does not hear the Ctrl-C that its parent hears", () =>
    inFolder(async (folder, binary) => {
      const { parent, pid } = await parentOf(folder, binary)
      // As a terminal does, to the whole process group. SIGSTOP first, so that only this signal can
      // end the server.
      process.kill(parent.pid!, "SIGSTOP")
      process.kill(-parent.pid!, "SIGINT")
      assert.isTrue(await unchanged(() => runs(pid), 200))
      process.kill(parent.pid!, "SIGCONT")
      await once(parent, "exit")
      await until(
        async () => runs(pid),
        (isRunning) => !isRunning
      )
    }))

  it("says how to start a second process beside the server that holds its folder", () =>
    inFolder(async (folder, binary) => {
      const first = await launch({ folder, binary, login: true })
      const refused = await launch({ folder, binary }).then(
        () => "started",
        (error: Error) => error.message
      )
      await first.stop()
      assert.match(refused, /is in use by another embedded nats-server/)
      assert.match(refused, /second process .* `bellcast keys show` .* BELLCAST_PORT/)
      assert.notInclude(refused, new URL(first.url).password)
    }))

  it("takes another port when the wanted one is busy", () =>
    inFolder(async (folder, binary) => {
      const first = await launch({ folder: join(folder, "one"), binary })
      const second = await launch({ folder: join(folder, "two"), binary, port: first.port })
      await Promise.all([first.stop(), second.stop()])
      assert.notStrictEqual(second.port, first.port)
    }))

  it("takes another port when a server that starts at the same time takes the wanted one", () =>
    inFolder(async (folder, binary) => {
      const port = await claimPort()
      const launched = await Promise.allSettled(
        ["one", "two", "three"].map((name) => launch({ folder: join(folder, name), binary, port }))
      )
      const servers = launched.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []))
      for (const server of servers) await server.stop()
      assert.deepEqual(
        launched.filter(({ status }) => status === "rejected"),
        []
      )
      assert.lengthOf(new Set(servers.map((server) => server.port)), 3)
    }))

  it("says what nats-server said when it does not start", () =>
    inFolder(async (folder, binary) => {
      const refused = await launch({ folder, binary, syncInterval: "soon" }).then(
        () => "started",
        (error: Error) => error.message
      )
      assert.match(refused, /ended with code 1 at start/)
      assert.match(refused, /sync/i)
    }))
})
