// What a gateway cannot do without, bare, in a process of its own. `http`: node:http that reads a
// JSON body and answers as POST /channels/{id} does. `publish`: JetStream's client as anybody would
// use it, one conditional publish after another, as many at once as it is told. `both`: the two
// together, a request answered when its publish is.
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { type JetStreamClient, jetstream, jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { type Answered, type Order, summaryOf } from "./load.ts"

const [what, natsUrl, payload = ""] = process.argv.slice(2)
// A run that fails leaves nothing behind.
process.on("disconnect", () => process.exit())

const serve = (accept: (data: unknown) => Promise<void> | void) => {
  const server = createServer((request, response) => {
    const parts: Array<Buffer> = []
    request.on("data", (part: Buffer) => parts.push(part))
    request.on("end", async () => {
      await accept(JSON.parse(Buffer.concat(parts).toString()).data)
      const answer = JSON.stringify({ code: 202, message: "Accepted" })
      response.writeHead(202, {
        "Content-Type": "application/json; charset=UTF-8",
        "Content-Length": Buffer.byteLength(answer)
      })
      response.end(answer)
    })
  })
  server.listen(0, "127.0.0.1", () => process.send!((server.address() as AddressInfo).port))
}

const connected = async (stream: string): Promise<JetStreamClient> => {
  const nc = await connect({ servers: natsUrl! })
  await (await jetstreamManager(nc)).streams.add({
    name: stream,
    subjects: [`${stream}.>`],
    allow_direct: true
  })
  return jetstream(nc)
}

/** Publishes behind one's own last message on the subject. */
const lineOf = (js: JetStreamClient, subject: string) => {
  let lastSubjectSequence = 0
  return async (data: string) => {
    lastSubjectSequence = (await js.publish(subject, data, { expect: { lastSubjectSequence } })).seq
  }
}

const publish = async () => {
  const js = await connected("PUBLISH")
  const lines: Array<(data: string) => Promise<void>> = []
  const run = async ({ connections, millis }: Order): Promise<Answered> => {
    const latencies: Array<number> = []
    const start = performance.now()
    const one = async (_: unknown, n: number) => {
      lines[n] ??= lineOf(js, `PUBLISH.${n}`)
      for (let now = start; now < start + millis; now = performance.now()) {
        const sentAt = performance.now()
        await lines[n](payload)
        latencies.push(performance.now() - sentAt)
      }
    }
    await Promise.all(Array.from({ length: connections }, one))
    return summaryOf(latencies, start)
  }
  process.on("message", async (order: Order) => process.send!(await run(order)))
  process.send!(0)
}

const both = async () => {
  const js = await connected("BOTH")
  const free: Array<(data: string) => Promise<void>> = []
  let lines = 0
  serve(async (data) => {
    const line = free.pop() ?? lineOf(js, `BOTH.${lines++}`)
    await line(JSON.stringify({ data }))
    free.push(line)
  })
}

if (what === "http") serve(() => {})
else if (what === "publish") await publish()
else await both()
