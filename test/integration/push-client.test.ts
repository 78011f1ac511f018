// Requests to misbehaving push services over real sockets: every result is one response that can be
// classified.
import dns from "node:dns"
import { once } from "node:events"
import { syncBuiltinESMExports } from "node:module"
import { type AddressInfo, createServer, type Socket } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer } from "effect"
import { Settings } from "#config"
import { classify, PushClient } from "#delivery/push/post.ts"
import type { PushResponse } from "#delivery/push/transport/exchange.ts"
import { Origins } from "#delivery/push-service/origins.ts"

const layerWith = (env: Readonly<Record<string, string>>) =>
  PushClient.layer.pipe(
    Layer.provide(Origins.layer),
    Layer.provide(Settings.layer),
    Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(env)))
  )
const loopback = { BELLCAST_ALLOW_LOOPBACK_ENDPOINTS: "true", BELLCAST_PUSH_TIMEOUT_MILLIS: "1000" }

const lastByte = 255

/**
 * A server that sends these bytes as every response, in the way of `write`; it counts connections.
 */
const startServer = async (write: (socket: Socket) => void) => {
  let connections = 0
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    connections += 1
    sockets.add(socket)
    socket.on("error", () => {})
    socket.on("data", (chunk) => {
      // The last byte of the request.
      if (chunk.at(-1) === lastByte) write(socket)
    })
  }).listen(0, "127.0.0.1")
  await once(server, "listening")
  return {
    origin: `http://localhost:${(server.address() as AddressInfo).port}`,
    connections: () => connections,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    }
  }
}

/** Node's resolver, which for one name gives these answers in turn. */
const rebinding = (name: string, addresses: ReadonlyArray<string>) => {
  const real = dns.lookup as (...args: ReadonlyArray<unknown>) => void
  const left = [...addresses]
  let lookups = 0
  const install = (lookup: typeof real) => {
    Object.assign(dns, { lookup })
    syncBuiltinESMExports()
  }
  install((hostname, options, callback) => {
    if (hostname !== name) return real(hostname, options, callback)
    lookups += 1
    ;(callback as (error: null, addresses: unknown) => void)(null, [
      { address: left.shift(), family: 4 }
    ])
  })
  return { lookups: () => lookups, [Symbol.dispose]: () => install(real) }
}

const post = (
  origin: string,
  times = 1,
  env: Readonly<Record<string, string>> = loopback
): Promise<ReadonlyArray<PushResponse>> =>
  Effect.gen(function* () {
    const client = yield* PushClient
    const answers: Array<PushResponse> = []
    for (let i = 0; i < times; i++)
      answers.push(
        yield* client.post({
          origin,
          path: "/push/1?token=a%2Fb",
          headers: { ttl: "60" },
          body: Buffer.of(lastByte)
        })
      )
    return answers
  }).pipe(Effect.provide(layerWith(env)), Effect.runPromise)

const judged = (answer: PushResponse | undefined) =>
  classify(answer ?? { error: "none" }, "localhost", Date.now())

describe("a push service", () => {
  it("that sends a header twice asks for the longer wait", async () => {
    await using server = await startServer((socket) =>
      socket.write(
        "HTTP/1.1 503 Busy\r\nRetry-After: 5\r\nRetry-After: 7\r\n" +
          "X-WNS-Status: a\r\nX-WNS-Status: b\r\nContent-Length: 0\r\n\r\n"
      )
    )
    const [answer] = await post(server.origin)
    const wait = { retryAfterMillis: 7_000 }
    assert.deepStrictEqual(judged(answer), { kind: "failed", reason: "server-error", ...wait })
  })

  it("that sends 1xx first is judged by the final response, or by the lack of one", async () => {
    await using server = await startServer((socket) =>
      socket.write(
        "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" +
          "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"
      )
    )
    assert.deepInclude((await post(server.origin))[0], { status: 201 })
    await using silent = await startServer((socket) =>
      socket.end("HTTP/1.1 103 Early Hints\r\n\r\n")
    )
    assert.deepStrictEqual(judged((await post(silent.origin))[0]), {
      kind: "failed",
      reason: "reset"
    })
  })

  it("that breaks off in its answer is judged by the status it gave", async () => {
    await using server = await startServer((socket) =>
      socket.end("HTTP/1.1 410 Gone\r\nContent-Length: 1000\r\n\r\nunsub")
    )
    assert.deepStrictEqual(judged((await post(server.origin))[0]), {
      kind: "gone",
      reason: "gone"
    })
  })

  it("that answers at endless length is judged by the status it gave", async () => {
    await using server = await startServer((socket) =>
      socket.write(
        `HTTP/1.1 403 No\r\nContent-Length: 900000000\r\n\r\nBadJwtToken${"x".repeat(200_000)}`
      )
    )
    const [answer] = await post(server.origin)
    assert.deepStrictEqual(judged(answer), { kind: "failed", reason: "credentials" })
    assert.isAtMost(answer !== undefined && "body" in answer ? answer.body.length : 0, 4_096)
  })

  it("that takes too long ends at the timeout, with an unknown result", async () => {
    await using server = await startServer(() => {})
    const startedAt = performance.now()
    assert.deepStrictEqual(judged((await post(server.origin))[0]), {
      kind: "failed",
      reason: "timeout"
    })
    assert.isBelow(performance.now() - startedAt, 4_000)
  })

  it("that announces an answer for ever, or gives it byte by byte, is left after the time set", {
    timeout: 90_000
  }, async () => {
    const every = (first: string, again: string) => (socket: Socket) => {
      socket.write(first)
      const timer = setInterval(() => socket.write(again), 100)
      socket.once("close", () => clearInterval(timer))
    }
    await using hints = await startServer(every("", "HTTP/1.1 103 Early Hints\r\n\r\n"))
    await using head = await startServer(every("HTTP/1.1 503 Busy\r\nX-Slow: ", "x"))
    await using body = await startServer(
      every("HTTP/1.1 503 Busy\r\nContent-Length: 1000\r\n\r\n", "x")
    )
    const answers = await Promise.all([hints, head, body].map(({ origin }) => post(origin)))
    assert.deepStrictEqual(
      answers.map(([answer]) => judged(answer).reason),
      ["excessive", "timeout", "server-error"]
    )
  })

  it("is asked over connections that stay open, and not where it redirects to", async () => {
    await using other = await startServer((socket) =>
      socket.write("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
    )
    await using server = await startServer((socket) =>
      socket.write(`HTTP/1.1 307 Go\r\nLocation: ${other.origin}/\r\nContent-Length: 0\r\n\r\n`)
    )
    const answers = await post(server.origin, 20)
    assert.deepStrictEqual(
      answers.map((answer) => judged(answer).reason),
      Array.from({ length: 20 }, () => "redirect")
    )
    // The second request is sent before the pool has put the first connection back.
    assert.isAtMost(server.connections(), 2)
    assert.strictEqual(other.connections(), 0)
  })

  it("connects to the address that was checked, and not after its name changed", async () => {
    await using server = await startServer((socket) =>
      socket.end("HTTP/1.1 201 Created\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
    )
    using resolver = rebinding("push.example.com", ["127.0.0.1", "10.0.0.1", "127.0.0.1"])
    const answers = await post(server.origin.replace("localhost", "push.example.com"), 3)
    assert.deepStrictEqual(
      answers.map((answer) => judged(answer).reason),
      ["accepted", "address-not-allowed", "accepted"]
    )
    assert.deepStrictEqual([server.connections(), resolver.lookups()], [2, 3])
  })

  it("on this machine is not asked without the setting for it", async () => {
    await using server = await startServer((socket) =>
      socket.write("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
    )
    assert.deepStrictEqual(judged((await post(server.origin, 1, {}))[0]), {
      kind: "failed",
      reason: "address-not-allowed"
    })
    assert.strictEqual(server.connections(), 0)
  })
})
