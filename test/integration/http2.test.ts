// HTTP/2 to push services that speak it, over real connections: what it shares, and that whatever
// breaks is only tried again.
import { once } from "node:events"
import { constants, createSecureServer, type ServerHttp2Stream } from "node:http2"
import type { AddressInfo } from "node:net"
import { setDefaultCACertificates } from "node:tls"
import { ConfigProvider, Effect, Layer } from "effect"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { Settings } from "#config"
import { classify, PushClient } from "#delivery/push/post.ts"
import { Origins } from "#delivery/push-service/origins.ts"
import { finished, publish } from "../support/client.ts"
import { fillChannels } from "../support/fill.ts"
import { startNats } from "../support/nats.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"
import { testCertificate, trustingEnvironment } from "../support/tls.ts"

describe("the service", () => {
  it("with BELLCAST_HTTP2=false delivers over HTTP/1.1", { timeout: 60_000 }, async () => {
    await using nats = await startNats()
    await using push = await startPushService({ tls: true, http2: true, host: "localhost" })
    await using service = await startService({
      natsUrl: nats.url,
      env: { ...trustingEnvironment, BELLCAST_HTTP2: "false" }
    })
    const scripts = [
      ...Array.from({ length: 200 }, () => ["201"]),
      ...[["503", "201"], ["reset", "201"], ["410"], ["huge"]]
    ]
    const agents = scripts.map((script) => push.subscribe({ script }))
    const subscriptions = agents.map(({ subscription }) => subscription)
    await fillChannels(nats.url, [{ name: "news", subscriptions }])
    const counts = await finished(service.url, "news", await publish(service.url, "news", { n: 1 }))
    assert.deepInclude(counts, { accepted: 204, delivered: 203, gone: 1 })
    // Only HTTP/2 has pseudo-headers.
    const pushes = agents.flatMap(({ received }) => received)
    assert.isFalse(pushes.some(({ headers }) => ":path" in headers))
    assert.deepEqual(push.faults, [])
    assert.equal(push.counts.duplicates, 0)
  })
})

/** A server that treats each stream as told; it counts connections and streams. */
const startServer = async (treat: (stream: ServerHttp2Stream, count: number) => void) => {
  const counts = { sessions: 0, streams: 0 }
  const options = { ...testCertificate(), allowHTTP1: true }
  const server = createSecureServer(options, (request, response) => {
    if (request.httpVersionMajor < 2) response.writeHead(201).end()
  }).listen(0, "127.0.0.1")
  server.on("session", (session) => {
    counts.sessions += 1
    session.on("error", () => {})
  })
  server.on("stream", (stream) => {
    counts.streams += 1
    stream.on("error", () => {})
    treat(stream, counts.streams)
  })
  await once(server, "listening")
  return {
    counts,
    origin: `https://localhost:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => void server.close()
  }
}

/** How so many pushes at once are judged, and as many again after them. */
const posted = (origin: string, pushes: number, times = 1, timeoutMillis = 10_000) =>
  Effect.gen(function* () {
    const client = yield* PushClient
    const post = client.post({
      origin,
      path: "/push/1",
      headers: { ttl: "60" },
      body: Buffer.of(1)
    })
    const together = Effect.all(
      Array.from({ length: pushes }, () => post),
      { concurrency: "unbounded" }
    )
    const answers = yield* Effect.all(Array.from({ length: times }, () => together))
    return answers
      .flat()
      .map((answer) => classify(answer, "localhost", 0))
      .map(({ kind: outcome, reason }) => `${outcome} ${reason}`)
  }).pipe(
    Effect.provide(
      PushClient.layer.pipe(
        Layer.provide(Origins.layer),
        Layer.provide(Settings.layer),
        Layer.provide(
          ConfigProvider.layer(
            ConfigProvider.fromUnknown({
              BELLCAST_ALLOW_LOOPBACK_ENDPOINTS: "true",
              BELLCAST_PUSH_TIMEOUT_MILLIS: String(timeoutMillis),
              BELLCAST_HTTP2: "true"
            })
          )
        )
      )
    ),
    Effect.runPromise
  )

// Files share a worker: the next one must not trust the test certificate.
beforeAll(() => setDefaultCACertificates([testCertificate().cert]))
afterAll(() => setDefaultCACertificates([]))

const take = (stream: ServerHttp2Stream) => stream.respond({ ":status": 201 }, { endStream: true })
const all = (pushes: number, judged: string) => Array.from({ length: pushes }, () => judged)

describe("a push service that speaks HTTP/2", () => {
  it("takes many pushes at once over a few connections", async () => {
    await using server = await startServer(take)
    assert.deepEqual(await posted(server.origin, 64), all(64, "delivered accepted"))
    assert.equal(server.counts.streams, 64)
    // The second one may come too late to get any.
    assert.isAtMost(server.counts.sessions, 2)
  })

  it("and responds 421 gets one more request, over another connection", async () => {
    const asked: Array<unknown> = []
    await using server = await startServer((stream) => {
      asked.push(stream.session)
      stream.respond({ ":status": asked.length === 1 ? 421 : 201 }, { endStream: true })
    })
    assert.deepEqual(await posted(server.origin, 1, 2), ["dead unexpected", "delivered accepted"])
    assert.lengthOf(new Set(asked), 2)
  })

  it("and wants HTTP/1.1 (RFC 9113 section 7) gets it", async () => {
    await using server = await startServer((stream) =>
      stream.close(constants.NGHTTP2_HTTP_1_1_REQUIRED)
    )
    assert.deepEqual(await posted(server.origin, 3), all(3, "delivered accepted"))
    assert.equal(server.counts.streams, 3)
  })

  it("and refuses a stream once gets it again at once", async () => {
    await using server = await startServer((stream, count) =>
      count === 2 ? stream.close(constants.NGHTTP2_REFUSED_STREAM) : take(stream)
    )
    assert.deepEqual(await posted(server.origin, 3), all(3, "delivered accepted"))
    assert.equal(server.counts.streams, 4)
  })

  it("and sends no end of a body is judged by the status it gave", async () => {
    await using server = await startServer((stream) => {
      stream.respond({ ":status": 410 })
      stream.write("x".repeat(200_000))
    })
    assert.deepEqual(await posted(server.origin, 2, 1, 1_000), all(2, "gone gone"))
  })

  it("and goes away after its first answers has the rest over another connection", async () => {
    await using server = await startServer((stream, count) => {
      if (count === 11) return stream.session?.goaway(constants.NGHTTP2_NO_ERROR, 2 * 10 - 1)
      take(stream)
    })
    assert.deepEqual(await posted(server.origin, 64), all(64, "delivered accepted"))
    assert.isAtLeast(server.counts.sessions, 2)
  })

  it("and refuses streams, for ever, is tried again later", async () => {
    await using server = await startServer((stream) =>
      stream.close(constants.NGHTTP2_REFUSED_STREAM)
    )
    assert.deepEqual(await posted(server.origin, 3), all(3, "failed reset"))
  })

  it("and ends the connection with an error is tried again later", async () => {
    await using server = await startServer((stream) =>
      stream.session?.destroy(undefined, constants.NGHTTP2_INTERNAL_ERROR)
    )
    assert.deepEqual(await posted(server.origin, 3), all(3, "failed reset"))
  })

  it("and resets a stream is tried again later", async () => {
    await using server = await startServer((stream) =>
      stream.close(constants.NGHTTP2_INTERNAL_ERROR)
    )
    assert.deepEqual(await posted(server.origin, 3), all(3, "failed reset"))
  })

  it("and does not answer in time is tried again later", async () => {
    await using server = await startServer(() => {})
    assert.deepEqual(await posted(server.origin, 3, 1, 1_000), all(3, "failed timeout"))
  })
})
