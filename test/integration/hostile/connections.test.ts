// Connections are bounded in all and per address, and only a trusted proxy may name an address.
import { afterAll, afterEach, assert, beforeAll, describe, it } from "vitest"
import { idle } from "../../bench/cpu.ts"
import { call, until } from "../../support/client.ts"
import { connectionsOf } from "../../support/hostile/process.ts"
import { authorization, type Client, open, request, reset } from "../../support/hostile/socket.ts"
import { startNats } from "../../support/nats.ts"
import { type Service, startService } from "../../support/service.ts"

const max = 60
const perAddressMax = 20
const hostile = "127.0.0.2"
const proxy = "127.0.0.9"
const heartbeat = request("GET /v1/__lbheartbeat__")
const waitMillis = 10_000

describe("connections", () => {
  const stack = new AsyncDisposableStack()
  let service: Service
  let clients: Array<Client> = []

  beforeAll(async () => {
    const nats = stack.use(await startNats())
    const env = {
      BELLCAST_CONNECTIONS_MAX: String(max),
      BELLCAST_CONNECTIONS_PER_ADDRESS_MAX: String(perAddressMax),
      BELLCAST_TRUSTED_PROXIES: `${proxy}/32`
    }
    service = stack.use(await startService({ natsUrl: nats.url, roles: "gateway,projection", env }))
  })
  afterAll(() => stack.disposeAsync())
  afterEach(async () => {
    const addresses = new Set(clients.map(({ socket }) => socket.localAddress ?? hostile))
    for (const client of clients) reset(client)
    clients = []
    await until(
      async () => [hostile, proxy, ...addresses].map((from) => connectionsOf(from, service.port)),
      (counts) => counts.every((count) => count === 0)
    )
  })

  /** The status and headers of the first answer on a new connection; empty: closed without one. */
  const first = async (from: string, text: string): Promise<string> => {
    const client = await open({ port: service.port, from })
    clients.push(client)
    client.socket.write(text)
    await client.answered(waitMillis)
    return client.received().split("\r\n\r\n")[0]!
  }
  const firsts = (count: number, from: string, text: string) =>
    Promise.all(Array.from({ length: count }, () => first(from, text)))
  const withStatus = (heads: ReadonlyArray<string>, status: number) =>
    heads.filter((head) => head.startsWith(`HTTP/1.1 ${status} `)).length

  it("of one address are refused with 429 beyond its bound, and others are served", async () => {
    const heads = await firsts(perAddressMax + 5, hostile, heartbeat)
    assert.equal(withStatus(heads, 200), perAddressMax)
    assert.equal(withStatus(heads, 429), 5)
    for (const head of heads.filter((each) => each.includes(" 429 ")))
      assert.match(head, /^Retry-After: \d+$/im)
    assert.equal(withStatus([await first("127.0.0.3", heartbeat)], 200), 1)
    // Room again: the address is served as before.
    reset(clients.shift()!)
    await until(
      () => first(hostile, heartbeat),
      (head) => head.startsWith("HTTP/1.1 200")
    )
  })

  it("in all have a bound, and idle ones make room for a client that comes later", async () => {
    const others = ["127.0.0.4", "127.0.0.5", "127.0.0.6", "127.0.0.7"]
    for (const from of others) await firsts(perAddressMax, from, heartbeat)
    const counts = others.map((from) => connectionsOf(from, service.port))
    assert.isAtMost(
      counts.reduce((sum, count) => sum + count, 0),
      max
    )
    await until(
      () => call(service.url, "GET", "/__lbheartbeat__").catch(() => undefined),
      (answer) => answer?.status === 200
    )
  })

  it("of a slow reader are not cut in the middle of an answer to make room", async () => {
    const requests = Array.from({ length: 25 }, () => ({ path: "/__api__" }))
    const body = JSON.stringify({ requests })
    // Three answers of 1.6 MB: more than the kernel takes for a client that does not read.
    const text = request("POST /v1/batch", ["Content-Type: application/json"], body).repeat(3)
    const isWhole = ({ bytes }: Client) => bytes() > 3 * 25 * 60_000
    const slow = await open({ port: service.port, from: "127.0.0.8" })
    clients.push(slow)
    slow.socket.pause()
    slow.socket.write(text)
    await idle([service.process.pid!])
    for (const from of ["127.0.0.4", "127.0.0.5", "127.0.0.6", "127.0.0.7"])
      await firsts(perAddressMax, from, heartbeat)
    slow.socket.resume()
    await until(
      async () => isWhole(slow) || slow.isClosed(),
      (over) => over
    )
    assert.isTrue(isWhole(slow), `${slow.bytes()} bytes`)
  })

  /** Requests under way: their bodies never end. */
  const under = (forwarded: string) =>
    request("POST /v1/subscriptions", [
      authorization("u"),
      "Content-Type: application/json",
      "Content-Length: 9",
      "Expect: 100-continue",
      `X-Forwarded-For: ${forwarded}`
    ])

  it("of a trusted proxy count under the address that it forwards", async () => {
    const heads = await firsts(perAddressMax + 5, proxy, under("192.0.2.1"))
    assert.equal(withStatus(heads, 100), perAddressMax)
    assert.equal(withStatus(heads, 429), 5)
    // Another client of the proxy is served, over whatever connection.
    assert.equal(withStatus([await first(proxy, under("192.0.2.2"))], 100), 1)
    // The proxy appends: what a client wrote before counts for nothing.
    assert.equal(withStatus([await first(proxy, under("192.0.2.3, 192.0.2.1"))], 429), 1)
  })

  it("with a forged X-Forwarded-For count under the address of their peer", async () => {
    const forged = Array.from({ length: perAddressMax + 5 }, (_, n) => under(`192.0.2.${n}`))
    const heads = await Promise.all(forged.map((text) => first(hostile, text)))
    assert.equal(withStatus(heads, 100), perAddressMax)
    assert.equal(withStatus(heads, 429), 5)
  })
})
