// A push service whose HTTP/2 sessions fall silent can be reached over new ones.
import { once } from "node:events"
import { createSecureServer, type ServerHttp2Session } from "node:http2"
import { type AddressInfo, createServer, connect as dial, type Server, type Socket } from "node:net"
import { setDefaultCACertificates } from "node:tls"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { anyLookup } from "#basics/address-filter.ts"
import { Peer } from "#delivery/push/transport/peer.ts"
import { until } from "../support/client.ts"
import { elapsed } from "../support/quiet.ts"
import { testCertificate } from "../support/tls.ts"

const streams = 4
const limits = {
  connectMillis: 2_000,
  responseMillis: 4_000,
  silenceMillis: 2_000,
  totalMillis: 6_000
}
const { cert, key } = testCertificate()
const portOf = (server: Server) => (server.address() as AddressInfo).port

/** A push service behind a proxy that can stop passing bytes on without closing a connection. */
const startSilencing = async () => {
  const sessions = new Set<ServerHttp2Session>()
  const pairs = new Set<readonly [Socket, Socket]>()
  const state = { answers: true, unanswered: 0 }
  const service = createSecureServer({ key, cert, settings: { maxConcurrentStreams: streams } })
  service.on("session", (session) => {
    sessions.add(session)
    session.on("error", () => {}).on("close", () => sessions.delete(session))
  })
  service.on("stream", (stream) => {
    stream.on("error", () => {})
    if (!state.answers) {
      state.unanswered += 1
      return
    }
    stream.respond({ ":status": 201 })
    stream.end()
  })
  service.listen(0, "127.0.0.1")
  await once(service, "listening")
  const proxy = createServer({ allowHalfOpen: true }, (client) => {
    const upstream = dial(portOf(service), "127.0.0.1")
    for (const socket of [client, upstream]) socket.on("error", () => {})
    client.pipe(upstream)
    upstream.pipe(client)
    pairs.add([client, upstream])
  })
  proxy.listen(0, "127.0.0.1")
  await once(proxy, "listening")
  return {
    state,
    port: portOf(proxy),
    /** Returns when the proxy has passed it on. */
    goAway: async () => {
      const open = [...pairs].filter(([client]) => !client.isPaused())
      const before = open.map(([, { bytesRead }]) => bytesRead)
      for (const session of sessions) session.goaway(0, 2 ** 31 - 1)
      const isPassed = ([client, { bytesRead }]: (typeof open)[number], i: number) =>
        bytesRead > before[i]! && client.writableLength === 0
      await until(async () => open.every(isPassed), Boolean)
    },
    silence: () => {
      for (const [client, upstream] of pairs) {
        client.unpipe().pause()
        upstream.unpipe().pause()
      }
    },
    close: () => {
      for (const socket of [...pairs].flat()) socket.destroy()
      proxy.close()
      service.close()
    }
  }
}

describe("a push service whose sessions fall silent", { timeout: 60_000 }, () => {
  beforeAll(() => setDefaultCACertificates([cert]))
  afterAll(() => setDefaultCACertificates([]))

  it.for([true, false])("is reached over new sessions, after GOAWAY: %s", async (saysGoAway) => {
    const service = await startSilencing()
    const peer = new Peer(`https://localhost:${service.port}`, {
      http2: true,
      connectionsMax: 512,
      limits,
      lookup: anyLookup()
    })
    const post = () =>
      new Promise<unknown>((resolve) =>
        peer.post({ path: "/push", headers: { ttl: "1" }, body: Buffer.from("body") }, (outcome) =>
          resolve("status" in outcome ? outcome.status : outcome.error)
        )
      )
    const posts = (count: number) => Promise.all(Array.from({ length: count }, post))
    // More pushes than all sessions take, so that each round leaves as many silent ones as there
    // may be.
    for (let round = 0; round < 3; round++) {
      Object.assign(service.state, { answers: true, unanswered: 0 })
      assert.deepEqual([...new Set(await posts(8))], [201], `in round ${round}`)
      service.state.answers = false
      const unanswered = posts(64)
      await until(
        async () => service.state.unanswered,
        (count) => count === 64
      )
      if (saysGoAway) await service.goAway()
      service.silence()
      assert.notInclude(await unanswered, 201)
      // Without GOAWAY, the next pushes come while silent sessions are not given up yet.
      await elapsed(2_500)
    }
    await peer.destroy()
    service.close()
  })
})
