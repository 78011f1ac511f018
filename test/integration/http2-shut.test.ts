// A push service whose HTTP/2 window stays shut for longer than a push may take: the push is
// cancelled, body and all. Node.js would else hang as soon as the window opens.
import { once } from "node:events"
import { constants, createSecureServer } from "node:http2"
import type { AddressInfo } from "node:net"
import { setDefaultCACertificates } from "node:tls"
import { afterAll, assert, beforeAll, it } from "vitest"
import { anyLookup } from "#basics/address-filter.ts"
import type { PushResponse } from "#delivery/push/transport/exchange.ts"
import { limitsOf } from "#delivery/push/transport/exchange.ts"
import { Peer } from "#delivery/push/transport/peer.ts"
import { until } from "../support/client.ts"
import { testCertificate } from "../support/tls.ts"

const certificate = testCertificate()
beforeAll(() => setDefaultCACertificates([certificate.cert]))
afterAll(() => setDefaultCACertificates([]))

it("is told that a push is cancelled, and gets the next one when its window opens", async () => {
  const codes: Array<number> = []
  const service = createSecureServer({ ...certificate, settings: { initialWindowSize: 0 } })
  let sessions = 0
  service.on("session", (session) => {
    sessions += 1
    session.on("error", () => {})
  })
  let open = () => {}
  service.on("stream", (stream) => {
    const { session } = stream
    open = () => session?.settings({ initialWindowSize: 65_535 })
    stream.on("error", () => {}).on("close", () => codes.push(stream.rstCode))
    stream.resume().on("end", () => {
      if (!stream.destroyed) stream.respond({ ":status": 201 }, { endStream: true })
    })
  })
  await once(service.listen(0, "127.0.0.1"), "listening")
  const peer = new Peer(`https://localhost:${(service.address() as AddressInfo).port}`, {
    http2: true,
    connectionsMax: 512,
    limits: limitsOf(500),
    lookup: anyLookup()
  })
  const post = () =>
    new Promise<PushResponse>((resolve) =>
      peer.post({ path: "/push", headers: { ttl: "60" }, body: Buffer.alloc(300) }, resolve)
    )
  // The first push is sent before the settings of the push service arrive.
  assert.deepInclude(await post(), { status: 201 })
  assert.deepEqual(await post(), { error: "UND_ERR_HEADERS_TIMEOUT" })
  // Fails here without RST_STREAM. The window stays shut then: this process itself would hang.
  await until(
    async () => codes,
    ({ length }) => length === 2,
    5_000
  )
  assert.deepEqual(codes, [constants.NGHTTP2_NO_ERROR, constants.NGHTTP2_CANCEL])
  open()
  assert.deepInclude(await post(), { status: 201 })
  assert.strictEqual(sessions, 1)
  await peer.destroy()
  service.close()
})
