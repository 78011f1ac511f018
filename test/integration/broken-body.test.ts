// Bodies that are not read to their end: a publisher whose connection breaks in the middle
// publishes nothing, not even an empty push, and a client that sends too much gets its response.
import { connect as socketTo } from "node:net"
import { assert, it } from "vitest"
import { publish, until } from "../support/client.ts"
import { exchangeRaw } from "../support/hostile/exchange.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { useService } from "../support/use-service.ts"

const shared = useService()

it.for(["FIN", "RST"] as const)(
  "takes nothing for a broadcast that ends with %s before its length",
  { timeout: 60_000 },
  async (ending) => {
    const { nats, service } = shared
    const authorization = `Basic ${Buffer.from("publisher:secret").toString("base64")}`
    const socket = socketTo(service.port, "127.0.0.1")
    socket.on("error", () => {})
    const head = [
      `POST /v1/channels/${ending} HTTP/1.1`,
      "Host: a",
      `Authorization: ${authorization}`,
      "Content-Type: application/json",
      "Content-Length: 500"
    ]
    socket.write(`${head.join("\r\n")}\r\n\r\n{"data":{"a":1`)
    // The service has begun to read it once it has answered another request that came later.
    await until(
      () => fetch(`${service.url}/__lbheartbeat__`),
      ({ status }) => status === 200
    )
    if (ending === "FIN") socket.end()
    else socket.resetAndDestroy()
    await publish(service.url, ending, { whole: true })
    await using admin = await connectAdmin(nats.url)
    const { jsm } = admin
    const { state } = await jsm.streams.info("BELLCAST_LOG", {
      subjects_filter: `bellcast.cmd.broadcast.*.${ending}`
    })
    assert.deepEqual(state.subjects, { [`bellcast.cmd.broadcast.rest.${ending}`]: 1 })
    const lines = service.output().split("\n")
    const taken = lines.filter(
      (line) => line.includes(`/channels/${ending}"`) && /code":202/.test(line)
    )
    assert.isAtMost(taken.length, 1)
  }
)

it.for([
  ["GET", "/__api__", 200],
  ["POST", "/subscriptions", 413]
] as const)(
  "responds in full to %s %s with a body that it does not read, before it closes",
  { timeout: 60_000 },
  async ([method, path, expected]) => {
    const { port } = shared.service
    const head = [
      `${method} /v1${path} HTTP/1.1`,
      "Host: a",
      "Connection: close",
      `Authorization: Basic ${Buffer.from("publisher:secret").toString("base64")}`,
      "Content-Type: application/json",
      "Content-Length: 3000000"
    ]
    const sent = Buffer.from(`${head.join("\r\n")}\r\n\r\n${"x".repeat(3_000_000)}`)
    // One in ten was cut off.
    for (let i = 0; i < 10; i++) {
      const answers = await Promise.all(
        Array.from({ length: 10 }, () => exchangeRaw({ port, from: "127.0.0.2" }, sent, 10_000))
      )
      for (const { headers, status, text } of answers) {
        assert.equal(status, expected)
        assert.equal(Buffer.byteLength(text), Number(headers["content-length"]))
      }
    }
  }
)
