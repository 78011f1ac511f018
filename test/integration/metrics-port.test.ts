// The metrics port of a process: its address, its pages, and its bounds against clients that mean
// harm. test/integration/metrics.test.ts scrapes the ports of processes with split roles.
import { once } from "node:events"
import { get } from "node:http"
import { connect, createServer, type Socket } from "node:net"
import { totalmem } from "node:os"
import { text } from "node:stream/consumers"
import { ConfigProvider, Effect, Exit, Layer, Logger, Scope } from "effect"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { Settings } from "#config"
import { Health } from "#monitoring/health.ts"
import { MetricsPort } from "#monitoring/port.ts"
import { natsLayer } from "#nats/layer.ts"
import { ServerHealth } from "#nats/watch/server-health.ts"
import { Space } from "#nats/watch/space.ts"
import { StreamWatch } from "#nats/watch/streams.ts"
import { Upkeep } from "#nats/watch/upkeep.ts"
import { call, until } from "#test/client.ts"
import { startNats, type TestNats } from "#test/nats.ts"
import { logStartFailure } from "../../src/failed-start.ts"

/** Those of src/monitoring/port.ts. */
const connectionsMax = 64
const loopback = "127.0.0.1:0"

describe("the metrics port", { timeout: 60_000 }, () => {
  let nats: TestNats
  const lines: Array<string> = []
  const logger = Logger.make<unknown, void>(
    ({ message }) => void lines.push(JSON.stringify(message))
  )
  const scope = Effect.runSync(Scope.make())
  beforeAll(async () => {
    nats = await startNats()
  })
  afterAll(async () => {
    await Effect.runPromise(Scope.close(scope, Exit.void))
    await nats[Symbol.asyncDispose]()
  })

  /**
   * Opens a port until the end of the file. Resolves with its address, rejects as a start fails.
   */
  const open = async (setting: string | undefined): Promise<string | undefined> => {
    const env = setting === undefined ? {} : { BELLCAST_METRICS_ADDRESS: setting }
    const layer = MetricsPort.layer.pipe(
      Layer.provide(Health.layer({ readonly: false, timeoutSeconds: 2 })),
      Layer.provide(ServerHealth.layer),
      Layer.provide(Upkeep.layer),
      Layer.provide(Space.layer),
      Layer.provide(StreamWatch.layer),
      Layer.provide(natsLayer({ url: nats.url, name: "test" })),
      Layer.provide(Settings.layer),
      Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env })))
    )
    const port = Effect.flatMap(Layer.buildWithScope(layer, scope), (context) =>
      MetricsPort.pipe(Effect.provide(context))
    )
    const { address } = await Effect.runPromise(
      port.pipe(Effect.tapCause(logStartFailure), Effect.provide(Logger.layer([logger])))
    )
    return address
  }

  it("fails the start where the setting names an address that is taken", async () => {
    const other = createServer().listen(0, "127.0.0.1")
    await once(other, "listening")
    const { port } = other.address() as { readonly port: number }
    const failure = await open(`127.0.0.1:${port}`).then(
      () => "",
      (error: Error) => error.constructor.name
    )
    other.close()
    assert.equal(failure, "MetricsPortError")
    assert.include(
      lines.join("\n"),
      "cannot start. The metrics port cannot be opened: listen EADDRINUSE: address already in " +
        `use 127.0.0.1:${port} (BELLCAST_METRICS_ADDRESS)`
    )
  })

  it("is another one, and says which, where the default is taken", async () => {
    const [first, second] = [await open(undefined), await open(undefined)]
    assert.notEqual(first, second)
    for (const address of [first, second])
      assert.equal((await call(`http://${address}`, "GET", "/__lbheartbeat__")).status, 200)
    assert.isTrue(lines.some((line) => line.includes(`"metrics":"${second}"`)))
  })

  it("is off when the setting says so", async () => {
    assert.isUndefined(await open("off"))
    assert.isUndefined(await open("0"))
  })

  it("shows metrics and heartbeats, and nothing else", async () => {
    const base = `http://${await open(loopback)}`
    const metrics = await call(base, "GET", "/metrics?from=prometheus")
    assert.equal(metrics.status, 200)
    assert.equal(metrics.headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8")
    assert.match(metrics.body, /^bellcast_oldest_push_age_seconds /m)
    const read = (name: string) =>
      Number(new RegExp(`^${name} (\\S+)$`, "m").exec(metrics.body)?.[1])
    assert.isAbove(read("process_cpu_seconds_total"), 0)
    assert.isAbove(read("process_resident_memory_bytes"), 10 ** 7)
    assert.isAbove(read("nodejs_heap_size_used_bytes"), 10 ** 6)
    const limit = read("bellcast_memory_limit_bytes")
    assert.isTrue(limit > 10 ** 7 && limit <= totalmem(), `${limit}`)
    assert.isAbove(read('nodejs_eventloop_time_seconds_total{state="active"}'), 0)
    assert.isAtLeast(read("nodejs_eventloop_lag_max_seconds"), 0)
    assert.isAtLeast(read('nodejs_gc_duration_seconds_count{kind="major"}'), 0)
    if (process.platform === "linux")
      assert.isBelow(read("process_open_fds"), read("process_max_fds"))
    const alive = await call(base, "GET", "/__lbheartbeat__")
    assert.deepEqual([alive.status, alive.body], [200, {}])
    // This NATS has no streams and no buckets.
    const sick = await call(base, "GET", "/__heartbeat__")
    assert.deepEqual([sick.status, sick.headers.get("retry-after")], [503, "3"])
    const checks = { storage: false, cache: false, permission: false, delivery: false }
    assert.deepInclude(sick.body, checks)
    const head = await call(base, "HEAD", "/metrics")
    assert.deepEqual([head.status, head.body], [200, ""])
    for (const path of ["/", "/v1/", "/metrics/", "/constructor", "//metrics"])
      assert.equal((await call(base, "GET", path)).status, 404, path)
    const post = await call(base, "POST", "/metrics", undefined, "x".repeat(100_000))
    assert.deepEqual([post.status, post.headers.get("allow")], [405, "GET, HEAD"])
  })

  it("shows nothing to a page of a foreign site that has a name for this machine", async () => {
    const port = (await open(loopback))!.split(":")[1]
    const read = async (host: string, path: string) => {
      const options = { host: "127.0.0.1", port, path, headers: { host } }
      const [response] = await once(get(options), "response")
      return [response.statusCode, await text(response)] as const
    }
    for (const path of ["/metrics", "/__heartbeat__"]) {
      const [status, body] = await read(`evil.example:${port}`, path)
      assert.equal(status, 403)
      assert.match(body, /^This name may be that of a foreign site\. .*BELLCAST_METRICS_ADDRESS/)
    }
    assert.equal((await read(`localhost:${port}`, "/metrics"))[0], 200)
    assert.equal((await read("push.example.org", "/__lbheartbeat__"))[0], 200)
  })

  it("answers probes while others hold connections, send much or send nonsense", async () => {
    const address = (await open(loopback))!
    const port = Number(address.split(":")[1])
    const sockets: Array<Socket> = []
    const received = new Map<Socket, string>()
    const dial = async (text: string) => {
      const socket = connect(port, "127.0.0.1").on("error", () => {})
      sockets.push(socket)
      socket.setEncoding("utf8").on("data", (more: string) => {
        received.set(socket, (received.get(socket) ?? "") + more)
      })
      await once(socket, "connect")
      socket.write(text)
      return socket
    }
    const isOpen = (socket: Socket) => !socket.closed
    try {
      for (let i = 0; i < 2 * connectionsMax; i++) await dial("GET /metrics HT")
      await until(
        async () => sockets.filter(isOpen).length,
        (count) => count === connectionsMax
      )
      assert.equal((await call(`http://${address}`, "GET", "/__lbheartbeat__")).status, 200)

      const line = "GET /__lbheartbeat__ HTTP/1.1\r\nHost: x\r\n"
      const broken = await Promise.all([
        dial(`${line}\r\n`.repeat(1000)),
        dial(`${line}X: ${"x".repeat(10_000)}\r\n\r\n`),
        dial("nonsense\r\n\r\n"),
        dial("CONNECT elsewhere:443 HTTP/1.1\r\nHost: x\r\n\r\n")
      ])
      await until(
        async () => broken.filter(isOpen).length,
        (count) => count === 0
      )
      const statuses = broken.map((socket) =>
        [...(received.get(socket) ?? "").matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, code]) => code)
      )
      assert.deepEqual(statuses, [["200"], ["431"], ["400"], []])
      assert.equal((await call(`http://${address}`, "GET", "/__lbheartbeat__")).status, 200)
    } finally {
      for (const socket of sockets) socket.destroy()
    }
  })
})
