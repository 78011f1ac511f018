// Push services that send more than a response: their connections are ended, and they are left
// alone for a while. They run in a process of their own.
import { once } from "node:events"
import { createSecureServer } from "node:http2"
import type { AddressInfo } from "node:net"
import { setTimeout as pause } from "node:timers/promises"
import { createServer as createTlsServer, setDefaultCACertificates } from "node:tls"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { anyLookup } from "#basics/address-filter.ts"
import { classify } from "#delivery/push/post.ts"
import type { PushResponse } from "#delivery/push/transport/exchange.ts"
import { limitsOf } from "#delivery/push/transport/exchange.ts"
import { Peer } from "#delivery/push/transport/peer.ts"
import { until } from "../../support/client.ts"
import { pushKinds } from "../../support/hostile/push-kinds.ts"
import { spawnHostile } from "../../support/hostile/spawn-push.ts"
import { testCertificate } from "../../support/tls.ts"

const certificate = testCertificate()
// Files share a worker: the next one must not trust the test certificate.
beforeAll(() => setDefaultCACertificates([certificate.cert]))
afterAll(() => setDefaultCACertificates([]))

const hostile = spawnHostile()
afterAll(() => hostile[Symbol.asyncDispose]())

const peerOf = (origin: string, http2 = true) =>
  new Peer(origin, { http2, connectionsMax: 512, limits: limitsOf(10_000), lookup: anyLookup() })

const post = (peer: Peer, path = "/push/1"): Promise<PushResponse> =>
  new Promise((resolve) =>
    peer.post({ path, headers: { ttl: "60" }, body: Buffer.alloc(300) }, resolve)
  )
const reasonOf = (response: PushResponse) => classify(response, "localhost", 0).reason

/** Less than any time-out, and enough for a busy machine. */
const soonMillis = 4_000

describe("a push service", { timeout: 60_000 }, () => {
  const floods = Object.entries(pushKinds).filter(([, { again }]) => again)

  it.for(floods.map(([name]) => name))(
    "that sends %s loses its connection at once, and is left alone after five",
    async (kind) => {
      const origin = await hostile.ask("start", kind, {})
      const peer = peerOf(origin)
      for (let attacks = 1; attacks <= 5; attacks++) {
        assert.include(["excessive", "server-error", "accepted"], reasonOf(await post(peer)))
        await until(
          () => hostile.ask("counts", kind),
          ({ attacked, open }) => attacked >= attacks && open === 0,
          soonMillis
        )
      }
      const { requests } = await hostile.ask("counts", kind)
      assert.deepEqual(await post(peer), { error: "BELLCAST_EXCESSIVE" })
      assert.strictEqual((await hostile.ask("counts", kind)).requests, requests)
      await peer.destroy()
      await hostile.ask("stop", kind)
    }
  )

  it("that floods many connections at once is sent nothing while it is left alone", async () => {
    const kind = "103 again and again"
    const origin = await hostile.ask("start", kind, { accepts: 64 })
    const peer = peerOf(origin)
    const many = () => Promise.all(Array.from({ length: 64 }, () => post(peer)))
    assert.deepEqual([...new Set((await many()).map(reasonOf))], ["accepted"])
    assert.deepEqual([...new Set((await many()).map(reasonOf))], ["excessive"])
    const { requests } = await hostile.ask("counts", kind)
    assert.isAtMost(requests, 128)
    assert.deepEqual([...new Set((await many()).map(reasonOf))], ["excessive"])
    assert.strictEqual((await hostile.ask("counts", kind)).requests, requests)
    await until(
      () => hostile.ask("counts", kind),
      ({ open }) => open === 0,
      soonMillis
    )
    await peer.destroy()
    await hostile.ask("stop", kind)
  })

  it("that sends its head line by line is heard", async () => {
    const lines = Array.from({ length: 40 }, (_, i) => `X-${i}: x\r\n`)
    const head = ["HTTP/1.1 201 Created\r\n", ...lines, "Content-Length: 0\r\n\r\n"]
    const server = createTlsServer(certificate, (socket) => {
      socket.setNoDelay(true).on("error", () => {})
      socket.on("data", async (request) => {
        if (!request.includes("POST ")) return
        for (const line of head) {
          socket.write(line)
          await pause(1)
        }
      })
    })
    server.listen(0, "127.0.0.1")
    await once(server, "listening")
    const peer = peerOf(`https://localhost:${(server.address() as AddressInfo).port}`)
    const responses = await Promise.all(Array.from({ length: 8 }, () => post(peer)))
    assert.deepEqual([...new Set(responses.map(reasonOf))], ["accepted"])
    await peer.destroy()
    server.close()
  })

  it.for([true, false])(
    "with long heads and error pages is heard to the end, over HTTP/2: %s",
    async (http2) => {
      let connections = 0
      const page = `BadJwtToken${"x".repeat(60_000)}`
      const server = createSecureServer(
        { ...certificate, allowHTTP1: true },
        (request, response) => {
          const respond = () => response.writeHead(403, { x: "x".repeat(5_000) }).end(page)
          request.resume().on("end", respond)
        }
      )
      server.on("secureConnection", () => {
        connections += 1
      })
      server.listen(0, "127.0.0.1")
      await once(server, "listening")
      const peer = peerOf(`https://localhost:${(server.address() as AddressInfo).port}`, http2)
      for (let round = 0; round < 20; round++) {
        const responses = await Promise.all(Array.from({ length: 16 }, () => post(peer)))
        assert.deepEqual([...new Set(responses.map(reasonOf))], ["credentials"])
      }
      // A request may be sent before the pool has put the last connection back.
      assert.isAtMost(connections, 2 * 16)
      await peer.destroy()
      server.close()
    }
  )

  it("with a page too long at one endpoint loses no push to another one over HTTP/2", async () => {
    let connections = 0
    let accept = () => {}
    const server = createSecureServer(certificate, (request, response) => {
      // All pages together are less than the memory of a session of Node.js.
      if (request.url === "/page") response.writeHead(404).end("x".repeat(100_000))
      else accept = () => response.writeHead(201).end()
    })
    server.on("secureConnection", () => {
      connections += 1
    })
    server.listen(0, "127.0.0.1")
    await once(server, "listening")
    const peer = peerOf(`https://localhost:${(server.address() as AddressInfo).port}`)
    const push = post(peer)
    for (let round = 0; round < 20; round++)
      assert.strictEqual(reasonOf(await post(peer, "/page")), "gone")
    const pages = await Promise.all(Array.from({ length: 20 }, () => post(peer, "/page")))
    assert.deepEqual([...new Set(pages.map(reasonOf))], ["gone"])
    accept()
    assert.strictEqual(reasonOf(await push), "accepted")
    assert.strictEqual(connections, 1)
    await peer.destroy()
    server.close()
  })
})
