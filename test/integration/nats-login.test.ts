// A NATS that refuses the login for a while, because passwords change on servers before they change
// in settings.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { writeFile } from "node:fs/promises"
import { join as joined } from "node:path"
import { Effect } from "effect"
import { assert, it } from "vitest"
import { locateNatsServer } from "#embedded/program/locate.ts"
import { finished, join, publish, until } from "../support/client.ts"
import { temporaryFolder } from "../support/folder.ts"
import { claimPort } from "../support/ports.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"

/** A nats-server that knows one user; the password is changed while it runs. */
const startNatsWithPassword = async (first: string) => {
  const folder = await temporaryFolder()
  const config = joined(folder, "server.conf")
  const port = await claimPort()
  const write = (password: string) =>
    writeFile(
      config,
      `listen: "127.0.0.1:${port}"
jetstream { store_dir: "${folder}" }
authorization { user: bell, password: ${password} }
`
    )
  await write(first)
  const server = spawn(await Effect.runPromise(locateNatsServer), ["-c", config], {
    stdio: ["ignore", "ignore", "pipe"]
  })
  let log = ""
  server.stderr.setEncoding("utf8").on("data", (text: string) => {
    log += text
  })
  const exited = once(server, "exit")
  await until(
    async () => log,
    (text) => text.includes("Server is ready")
  )
  return {
    urlOf: (password: string) => `nats://bell:${password}@127.0.0.1:${port}`,
    refusals: () => log.split("authentication error").length - 1,
    setPassword: async (password: string) => {
      await write(password)
      server.kill("SIGHUP")
    },
    [Symbol.asyncDispose]: async () => {
      server.kill("SIGKILL")
      await exited
    }
  }
}

it("goes on when NATS, which refused our login, takes it again", { timeout: 60_000 }, async () => {
  await using nats = await startNatsWithPassword("one")
  await using push = await startPushService()
  await using service = await startService({ natsUrl: nats.urlOf("one") })
  const agent = push.subscribe()
  await join([service.url], "news", [agent.subscription])
  await nats.setPassword("two")
  await until(
    async () => nats.refusals(),
    (count) => count >= 2
  )
  await nats.setPassword("one")
  await until(
    async () => service.output(),
    (output) => output.includes("the connection to NATS is back")
  )
  for (const words of ["the connection to NATS is lost", "Authorization Violation"])
    assert.include(service.output(), words)
  assert.notInclude(service.output(), "bell:one")
  const broadcast = await publish(service.url, "news", { n: 1 })
  assert.deepInclude(await finished(service.url, "news", broadcast), { accepted: 1, delivered: 1 })
})
