// Clients that never read their answers, or never end their requests, cannot fill the memory.
import { afterAll, afterEach, assert, beforeAll, describe, it } from "vitest"
import { makeReceiverKeys } from "#cli/listen/push-receiver.ts"
import { idle } from "../../bench/cpu.ts"
import { Honest } from "../../support/hostile/honest.ts"
import { mebibytesOf } from "../../support/hostile/process.ts"
import { authorization, type Client, open, request, reset } from "../../support/hostile/socket.ts"
import { startNats } from "../../support/nats.ts"
import { type Service, sources, startService } from "../../support/service.ts"

const from = "127.0.0.2"
const subscriptions = 50
/** Sizes of an attribute, largest first: an old service stored the first. */
const largest = [15_000, 3_400]
/** Connections that send their request at the same time. */
const together = 6
const answerMillis = 10_000
/** Of the service's heap: the collector of a machine with much memory leaves garbage for long. */
const heapMebibytesMax = 300
/** Resident at most, ever: the heap, 64 MiB of answers, 64 MiB of bodies, and as much again. */
const mebibytesMax = 900
const json = "Content-Type: application/json"

describe("many connections", () => {
  const stack = new AsyncDisposableStack()
  let service: Service
  let honest: Honest
  let clients: Array<Client> = []

  beforeAll(async () => {
    const nats = stack.use(await startNats())
    const env = { NODE_OPTIONS: `--max-old-space-size=${heapMebibytesMax}` }
    stack.use(await startService({ natsUrl: nats.url, roles: "projection,fanout,tally" }))
    const options = { natsUrl: nats.url, roles: "gateway", env, forgets: true, program: sources }
    service = stack.use(await startService(options))
    honest = new Honest({ url: service.url, endpoints: ["http://127.0.0.1:1/honest"] })
    stack.defer(() => honest.close())
    for (const bytes of largest) if (await store(bytes)) return
    throw new Error("no subscription was stored")
  })
  afterAll(() => stack.disposeAsync())
  afterEach(() => {
    for (const client of clients) reset(client)
    clients = []
  })

  /** Stores subscriptions with so many bytes of an attribute; whether the service takes them. */
  const store = async (bytes: number): Promise<boolean> => {
    const { auth, p256dh } = makeReceiverKeys()
    for (let n = 0; n < subscriptions; n++) {
      const endpoint = `http://127.0.0.1:1/${n}`
      const data = { endpoint, keys: { auth, p256dh }, more: "x".repeat(bytes) }
      const ask = { method: "POST", path: "/subscriptions", user: "hostile", body: { data } }
      if ((await honest.send(ask)).status !== 201) return false
    }
    return true
  }

  /** Opens connections that send `text`, and read no more once their answer begins. */
  const attack = async (text: string, connections: number): Promise<void> => {
    for (let i = 0; i < connections; i += together) {
      const some = await Promise.all(
        Array.from({ length: together }, () => open({ port: service.port, from }))
      )
      clients.push(...some)
      for (const { socket } of some) {
        socket.once("data", () => socket.pause())
        socket.write(text)
      }
      await Promise.all(some.map((client) => client.answered(answerMillis)))
    }
  }

  const assertSmall = async () => {
    const { exitCode, signalCode } = service.process
    assert.deepEqual([exitCode, signalCode], [null, null])
    assert.isBelow(mebibytesOf(service.process.pid!, "VmHWM"), mebibytesMax)
    const { status } = await honest.send({ method: "GET", path: "/__lbheartbeat__" })
    assert.equal(status, 200)
  }

  it("may leave the answers to batches of lists unread", async () => {
    const requests = Array.from({ length: 25 }, () => ({ path: "/subscriptions" }))
    const headers = [authorization("hostile"), json]
    await attack(request("POST /v1/batch", headers, JSON.stringify({ requests })), 24)
    await assertSmall()
  })

  it("may send garbage behind a request whose answer they do not read", async () => {
    const requests = Array.from({ length: 25 }, () => ({ path: "/subscriptions" }))
    const headers = [authorization("hostile"), json]
    await attack(request("POST /v1/batch", headers, JSON.stringify({ requests })), 4)
    const garbage = Buffer.alloc(1024 ** 2, 1)
    for (let i = 0; i < 100; i++) for (const { socket } of clients) socket.write(garbage)
    await idle([service.process.pid!])
    await assertSmall()
  })

  it("may ask for the largest batches at the same time", async () => {
    const requests = Array.from({ length: 25 }, () => ({ path: "/subscriptions" }))
    const headers = [authorization("hostile"), json]
    const text = request("POST /v1/batch", headers, JSON.stringify({ requests }))
    const some = await Promise.all(
      Array.from({ length: 128 }, () => open({ port: service.port, from }))
    )
    clients.push(...some)
    for (const { socket } of some) socket.write(text)
    await Promise.all(some.map((client) => client.answered(40_000)))
    await assertSmall()
  })

  it("may leave pipelined lists unread", async () => {
    const list = request("GET /v1/subscriptions", [authorization("hostile")])
    await attack(list.repeat(30), 24)
    await assertSmall()
  })

  it("may send all but the end of a large body", async () => {
    const length = 300_000
    const headers = [authorization("hostile"), json, `Content-Length: ${length}`]
    const text = request("POST /v1/batch", headers) + " ".repeat(length - 1)
    const some = await Promise.all(
      Array.from({ length: 400 }, () => open({ port: service.port, from }))
    )
    clients.push(...some)
    for (const { socket } of some) socket.write(text)
    await idle([service.process.pid!])
    await assertSmall()
  })
})
