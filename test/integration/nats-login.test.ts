// A NATS that refuses the login for a while, because passwords change on servers before they change
// in settings.
import { assert, it } from "vitest"
import { finished, join, publish, until } from "../support/client.ts"
import { startConfiguredNats } from "../support/nats-configured.ts"
import { claimPort } from "../support/ports.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"

/** A nats-server that knows one user; the password is changed while it runs. */
const startNatsWithPassword = async (first: string) => {
  const port = await claimPort()
  const lines = (password: string) =>
    `jetstream {}\nauthorization { user: bell, password: ${password} }`
  const server = await startConfiguredNats(port, lines(first))
  return {
    ...server,
    urlOf: (password: string) => `nats://bell:${password}@127.0.0.1:${port}`,
    setPassword: (password: string) => server.reload(lines(password))
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
