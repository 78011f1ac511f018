// Pushes and requests to identity providers through the proxy that HTTPS_PROXY names.
import { once } from "node:events"
import { createServer } from "node:https"
import type { AddressInfo } from "node:net"
import { setDefaultCACertificates } from "node:tls"
import { Effect } from "effect"
import { assert, describe, it, onTestFinished } from "vitest"
import { proxyOf } from "#basics/outgoing.ts"
import { makeSend } from "#identity/provider/client.ts"
import { OutgoingProxy } from "#settings/addresses.ts"
import { pushesOf } from "../support/audit.ts"
import { finished, joinAll, publish, until } from "../support/client.ts"
import { startConnectProxy } from "../support/connect-proxy.ts"
import { startNats } from "../support/nats.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"
import { testCertificate, trustingEnvironment } from "../support/tls.ts"

const password = "s3cret-of-the-proxy"
const login = `Basic ${Buffer.from(`bell:${password}`).toString("base64")}`

describe("with HTTPS_PROXY", () => {
  it("pushes go through the proxy, wait while it opens no tunnel, and leak no login", {
    timeout: 120_000
  }, async () => {
    await using nats = await startNats()
    await using proxy = await startConnectProxy()
    await using push = await startPushService({ tls: true, http2: true, host: "localhost" })
    await using service = await startService({
      natsUrl: nats.url,
      env: {
        ...trustingEnvironment,
        BELLCAST_RETRY_BASE_MILLIS: "200",
        BELLCAST_BREAKER_OPEN_MILLIS: "500",
        HTTPS_PROXY: `http://bell:${password}@127.0.0.1:${proxy.port}`,
        NO_PROXY: "example.org"
      }
    })
    const agents = Array.from({ length: 40 }, () => push.subscribe())
    await joinAll(service.url, "news", agents)
    const first = await publish(service.url, "news", { n: 1 })
    assert.deepInclude(await finished(service.url, "news", first), { delivered: 40 })
    assert.deepEqual([...new Set(proxy.asked)], [new URL(push.origin).host])
    assert.deepEqual([...new Set(proxy.logins)], [login])

    proxy.answer = 407
    push.disconnect()
    const second = await publish(service.url, "news", { n: 2 })
    await until(
      () => pushesOf(nats.url, second),
      (list) => list.some(({ reason }) => reason === "proxy")
    )
    proxy.answer = undefined
    assert.deepInclude(await finished(service.url, "news", second), { delivered: 40 })
    const output = service.output()
    assert.notInclude(output, password)
    assert.notInclude(output, login)
    assert.include(output, `"proxy":"127.0.0.1:${proxy.port}"`)
    assert.include(output, "cannot be reached (proxy)")
    assert.deepEqual(push.faults, [])
  })

  it("identity providers are asked through the proxy, but not those in NO_PROXY", async () => {
    const certificate = testCertificate()
    setDefaultCACertificates([certificate.cert])
    onTestFinished(() => setDefaultCACertificates([]))
    await using proxy = await startConnectProxy()
    const server = createServer(certificate, (_, response) => response.end("{}"))
    await once(server.listen(0, "127.0.0.1"), "listening")
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    const asked = (noProxy: string) =>
      Effect.flatMap(makeSend("openid", ["localhost"]), (send) =>
        send({ url: `https://localhost:${port}/token`, isSingle: true })
      ).pipe(
        Effect.match({
          onSuccess: ({ status }) => status,
          onFailure: ({ cause }) => cause
        }),
        Effect.provideService(
          OutgoingProxy,
          proxyOf({ HTTPS_PROXY: proxy.url, NO_PROXY: noProxy })
        ),
        Effect.scoped,
        Effect.runPromise
      )
    assert.equal(await asked("elsewhere"), 200)
    assert.deepEqual(proxy.asked, [`localhost:${port}`])
    assert.equal(await asked("localhost"), 200)
    assert.lengthOf(proxy.asked, 1)
    proxy.answer = 403
    assert.equal(await asked(""), "BELLCAST_PROXY")
    proxy.answer = "nothing"
    assert.equal(await asked(""), "UND_ERR_CONNECT_TIMEOUT")
  })
})

it("a start with a proxy that cannot be used says so, without its login", async () => {
  const env = { HTTPS_PROXY: `socks5://bell:${password}@127.0.0.1:1080` }
  const message = await startService({ env }).then(
    async (service) => {
      await service.kill()
      return "it started"
    },
    (error: Error) => error.message
  )
  assert.include(message, "HTTPS_PROXY: Expected http://host:port")
  assert.notInclude(message, password)
})
