// An error that nobody handles: it is logged, requests under way get their answer, and the process
// exits with a failure, so that whatever supervises it starts it again.
import { once } from "node:events"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { until } from "../../support/client.ts"
import { authorization, type Client, open, request, reset } from "../../support/hostile/socket.ts"
import { startNats, type TestNats } from "../../support/nats.ts"
import { type Service, startService } from "../../support/service.ts"

const preload = new URL("../../support/hostile/throw-on-signal.ts", import.meta.url)
/** The process drains for at most this long. */
const drainMillis = 10_000
const from = "127.0.0.1"
const body = JSON.stringify({ data: { n: 1 } })

describe.concurrent("an uncaught exception", () => {
  const stack = new AsyncDisposableStack()
  let nats: TestNats

  beforeAll(async () => {
    nats = stack.use(await startNats())
  })
  afterAll(() => stack.disposeAsync())

  const start = () => {
    const env = { NODE_OPTIONS: `--import=${preload}` }
    return startService({ natsUrl: nats.url, roles: "gateway,projection", env })
  }

  /** A client that has sent a broadcast but for its last byte, and the service waits for that. */
  const almostSent = async ({ port }: Service): Promise<Client> => {
    const client = await open({ port, from })
    const headers = [
      authorization("publisher"),
      "Content-Type: application/json",
      "Expect: 100-continue"
    ]
    const text = request("POST /v1/channels/news", headers, body)
    client.socket.write(text.slice(0, -1))
    await client.answered(10_000)
    assert.match(client.received(), /^HTTP\/1\.1 100 /)
    return client
  }

  /** Whether the service takes no new connection; one that it takes is closed at once. */
  const isRefused = async ({ port }: Service): Promise<boolean> => {
    const newcomer = await open({ port, from })
    const refused = newcomer.isClosed()
    reset(newcomer)
    return refused
  }

  const fail = async (service: Service) => {
    const exited = once(service.process, "exit")
    const start = performance.now()
    service.process.kill("SIGUSR2")
    await until(
      async () => service.output(),
      (output) => output.includes("thrown by a test")
    )
    return exited.then(([code]) => ({ code, millis: performance.now() - start }))
  }

  it("is logged, lets a request under way finish, and ends the process with 1", async () => {
    await using service = await start()
    const client = await almostSent(service)
    const ended = fail(service)
    await until(
      () => isRefused(service),
      (refused) => refused
    )
    client.socket.write("}")
    await client.closed(drainMillis)
    assert.match(client.received(), /HTTP\/1\.1 202 /)
    const { code, millis } = await ended
    assert.equal(code, 1)
    assert.isBelow(millis, drainMillis)
    const line = service
      .output()
      .split("\n")
      .find((text) => text.includes("thrown by a test"))
    assert.include([50, 60], JSON.parse(line!).level)
  })

  it("ends the process also when a request never ends", async () => {
    await using service = await start()
    await almostSent(service)
    const { code, millis } = await fail(service)
    assert.equal(code, 1)
    assert.isBelow(millis, drainMillis * 2)
  })
})
