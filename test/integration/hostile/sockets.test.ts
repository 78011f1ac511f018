// The process survives every way in which a client can end its connection, in every phase of it,
// and serves an honest client meanwhile.
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { until } from "../../support/client.ts"
import { endIn, endings, phases } from "../../support/hostile/endings.ts"
import { Honest, honestConnectionsMax } from "../../support/hostile/honest.ts"
import { connectionsOf, descriptorsOf } from "../../support/hostile/process.ts"
import { open, request, reset } from "../../support/hostile/socket.ts"
import { startNats } from "../../support/nats.ts"
import { type Service, startService } from "../../support/service.ts"

const from = "127.0.0.2"
/** Connections of each ending in each phase. */
const times = 6
/** Connections that stay open at the same time. */
const heldConnections = 300
/** Requests in one write; more than 64 that wait close the connection. */
const pipelined = 60
/** How much slower the honest client's median request may become. */
const slowdownMax = 10
/** A median below this counts as this: the figures of an idle machine are mostly noise. */
const medianFloorMillis = 50

describe("hostile sockets", () => {
  const stack = new AsyncDisposableStack()
  let service: Service
  let honest: Honest

  beforeAll(async () => {
    const nats = stack.use(await startNats())
    // Leases are renewed within a second: a busy machine would lose them in the process that is
    // attacked. Without delivery: nothing here waits for a push service.
    const start = (roles: string) => startService({ natsUrl: nats.url, roles })
    stack.use(await start("projection,fanout,tally"))
    service = stack.use(await start("gateway"))
    const endpoints = Array.from({ length: 20 }, (_, n) => `http://127.0.0.1:1/${n}`)
    honest = new Honest({ url: service.url, endpoints })
    stack.defer(() => honest.close())
  })
  afterAll(() => stack.disposeAsync())

  const figures = async () => ({
    hostile: connectionsOf(from, service.port),
    files: descriptorsOf(service.process.pid!)
  })

  /** Runs `attack` beside the honest client, and checks what both of them left behind. */
  const beside = async (attack: () => Promise<void>) => {
    for (let i = 0; i < 20; i++) await honest.round()
    const before = { ...(await figures()), p50: honest.take().p50 }
    const over = new AbortController()
    const rounds = honest.run(over.signal)
    await attack().finally(() => over.abort())
    await rounds
    assert.deepEqual(honest.failures, [])
    const { p50 } = honest.take()
    assert.isBelow(p50, Math.max(medianFloorMillis, before.p50) * slowdownMax)
    await until(
      figures,
      ({ files, hostile }) => hostile === 0 && files <= before.files + honestConnectionsMax
    )
  }

  const assertAlive = (phase: string) => {
    const { exitCode, signalCode } = service.process
    const end = service.output().slice(-2_000)
    assert.isTrue(exitCode === null && signalCode === null, `ended by a client ${phase}:\n${end}`)
  }

  it("end no process and disturb no other client, however and whenever they end", () =>
    beside(async () => {
      for (const phase of Object.keys(phases)) {
        const clients = Object.keys(endings).flatMap((ending) =>
          Array.from({ length: times }, () => endIn({ port: service.port, from }, phase, ending))
        )
        await Promise.all(clients)
        assertAlive(phase)
      }
    }))

  it("take turns, request by request, with those that send one at a time", async () => {
    const origin = { port: service.port, from }
    const clients = await Promise.all(Array.from({ length: 40 }, () => open(origin)))
    // Until all are accepted: Node accepts one connection in a round of its event loop.
    await Promise.all(clients.map((client) => phases["after the answer"]!(client)))
    for (const { socket } of clients) socket.write(request("HEAD /v1/__api__").repeat(pipelined))
    const { status } = await honest.send({ method: "GET", path: "/__lbheartbeat__" })
    assert.equal(status, 200)
    const answers = clients.map((client) => client.received().split("HTTP/1.1 200").length - 2)
    for (const client of clients) reset(client)
    const sum = answers.reduce((total, count) => total + count, 0)
    assert.isBelow(sum / clients.length, pipelined / 2, `${answers}`)
  })

  it("are served by hundreds at once, and all may be reset at the same moment", () =>
    beside(async () => {
      const bring = Object.values(phases)
      const clients = await Promise.all(
        Array.from({ length: heldConnections }, () => open({ port: service.port, from }))
      )
      await Promise.all(clients.map((client, i) => bring[i % bring.length]!(client)))
      for (let i = 0; i < 10; i++) await honest.round()
      for (const client of clients) reset(client)
      await honest.round()
      assertAlive("that was reset with many others")
    }))
})
