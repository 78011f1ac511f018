// A NATS that falls silent without closing its connections: its host lost power, or a firewall forgot them. Another of its cluster would answer.

import { once } from "node:events"
import { connect, createServer, type Socket } from "node:net"
import { assert, it } from "vitest"
import { finished, join, publish, until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { startPushService } from "../support/push-service.ts"
import { freePort, startService } from "../support/service.ts"

/** Stands before a server; `silence` lets nothing more through on the connections there are, and keeps them. */
const startProxy = async (url: string) => {
  const { hostname, port } = new URL(url)
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname)
    for (const socket of [client, upstream]) sockets.add(socket.on("error", () => {}))
    client.pipe(upstream)
    upstream.pipe(client)
  })
  const own = await freePort()
  server.listen(own, "127.0.0.1")
  await once(server, "listening")
  return {
    url: `nats://127.0.0.1:${own}`,
    silence: () => {
      for (const socket of sockets) socket.unpipe().pause()
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    }
  }
}

it("is left for another connection within half a minute, and what was accepted is delivered", { timeout: 60_000 }, async () => {
  await using nats = await startNats({ syncAlways: false })
  await using proxy = await startProxy(nats.url)
  await using push = await startPushService()
  await using service = await startService({ natsUrl: proxy.url })
  const agent = push.subscribe()
  await join([service.url], "news", [agent.subscription])
  proxy.silence()
  await until(
    async () => service.output(),
    (output) => output.includes("the connection to NATS is back"),
    30_000
  )
  const broadcast = await publish(service.url, "news", { n: 1 })
  assert.deepInclude(await finished(service.url, "news", broadcast), { accepted: 1, delivered: 1 })
})
