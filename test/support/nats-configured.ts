// A nats-server with a configuration written by the test, and a listener that pretends to be one.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { type AddressInfo, createServer, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { locateNatsServer } from "#embedded/program/locate.ts"
import { Condition } from "./condition.ts"

/**
 * With JetStream, on the port. `more`: further lines of the configuration. `env`: the variables
 * that it names. `kept`: its folder, which stays; unset: one of its own, which is removed.
 */
export const startConfiguredNats = async (
  port: number,
  more: string,
  env: Readonly<Record<string, string>> = {},
  kept?: string
) => {
  const folder = kept ?? (await mkdtemp(join(tmpdir(), "bellcast-configured-")))
  const config = join(folder, "server.conf")
  const write = (lines: string) => writeFile(config, `listen: "127.0.0.1:${port}"\n${lines}\n`)
  await write(more)
  const binary = await Effect.runPromise(locateNatsServer)
  const server = spawn(binary, ["-c", config, "-sd", folder], {
    stdio: ["ignore", "ignore", "pipe"],
    env: { ...process.env, ...env }
  })
  let log = ""
  const condition = new Condition(() => log)
  server.stderr.setEncoding("utf8").on("data", (text: string) => {
    log += text
    condition.changed()
  })
  const exited = once(server, "exit")
  const reloads = () => log.split("Reloaded server configuration").length - 1
  await condition.waitFor(
    (text) => text.includes("Server is ready"),
    20_000,
    () => log
  )
  return {
    /** Its files. */
    folder,
    /** How many logins it has refused. */
    refusals: () => log.split("authentication error").length - 1,
    /** Takes other lines of the configuration while it runs. Meanwhile it may refuse logins. */
    reload: async (lines: string) => {
      await write(lines)
      const before = reloads()
      server.kill("SIGHUP")
      await condition.waitFor(
        () => reloads() > before,
        20_000,
        () => log
      )
    },
    [Symbol.asyncDispose]: async () => {
      server.kill("SIGKILL")
      await exited
      if (kept === undefined) await rm(folder, { recursive: true, force: true })
    }
  }
}

/**
 * Greets like a nats-server without TLS that wants a login, and keeps what clients say. `more`:
 * further members of its INFO.
 */
export const startNatsRecorder = async (port = 0, more: object = {}) => {
  const sockets = new Set<Socket>()
  const seen = { connections: 0, said: "" }
  const condition = new Condition(() => seen)
  const info = { server_id: "recorder", version: "2.15.1", proto: 1, auth_required: true }
  const server = createServer((socket) => {
    sockets.add(socket)
    seen.connections++
    socket.on("error", () => {})
    socket.setEncoding("utf8").on("data", (text: string) => {
      seen.said += text
      condition.changed()
    })
    socket.write(`INFO ${JSON.stringify({ ...info, max_payload: 1_048_576, ...more })} \r\n`)
    socket.on("close", () => condition.changed())
  })
  server.listen(port, "127.0.0.1")
  await once(server, "listening")
  return {
    port: (server.address() as AddressInfo).port,
    seen,
    /** Resolves when this many connections have come and gone. */
    visited: (count: number) =>
      condition.waitFor(
        ({ connections }) => connections >= count && [...sockets].every((each) => each.destroyed),
        10_000,
        () => JSON.stringify(seen)
      ),
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, "close")
    }
  }
}
