// The hostile side of clients.ts, in a process of its own: every kind of hostile client at once,
// from 127.0.0.2 to 127.0.0.9. Arguments: the port and how many milliseconds; sends its counts.
import { endIn, endings, phases } from "../support/hostile/endings.ts"
import {
  authorization,
  type Client,
  open,
  pause,
  request,
  reset
} from "../support/hostile/socket.ts"

const [port = 0, millis = 0] = process.argv.slice(2).map(Number)
const over = new AbortController()
setTimeout(() => over.abort(), millis)
const { signal } = over

/** Clients of each kind at the same time: 200 in all, and one phase after the other beside them. */
const perKind = 25
/** How long a client that waits holds its connection. */
const holdMillis = 20_000
/** Between two connections of one client: without a pause the bench measures a flood of SYNs. */
const betweenMillis = 200
const json = "Content-Type: application/json"
const hostile = authorization("hostile")

type Attack = (client: Client) => Promise<void>

const hold = async (client: Client) => {
  const end = performance.now() + holdMillis
  while (!client.isClosed() && !signal.aborted && performance.now() < end) await pause(500, signal)
}
const unread =
  (text: string): Attack =>
  async (client) => {
    client.socket.pause().write(text)
    await hold(client)
  }
/** A byte a second, for as long as the server lets the client. */
const drip =
  (text: string): Attack =>
  async (client) => {
    for (let i = 0; i < text.length && !client.isClosed() && !signal.aborted; i++) {
      client.socket.write(text[i]!)
      await pause(1_000, signal)
    }
  }
const answered =
  (text: string): Attack =>
  async (client) => {
    client.socket.write(text)
    await client.answered(10_000)
  }
const length = 300_000
const batch = (path: string) =>
  request("POST /v1/batch", [hostile, json], JSON.stringify({ requests: [{ path }] }))
const lists = JSON.stringify({
  requests: Array.from({ length: 25 }, () => ({ path: "/subscriptions" }))
})

const kinds: Readonly<Record<string, Attack>> = {
  "sends nothing": hold,
  "a byte a second": drip(request("GET /v1/", [hostile])),
  "a body a byte a second": async (client) => {
    client.socket.write(request("POST /v1/subscriptions", [hostile, json, "Content-Length: 500"]))
    await drip('{"data":{"endpoint":"')(client)
  },
  "all of a body but its end": unread(
    request("POST /v1/batch", [hostile, json, `Content-Length: ${length}`]) + " ".repeat(length - 1)
  ),
  "unread answers to batches": unread(request("POST /v1/batch", [hostile, json], lists)),
  "unread pipelined answers": unread(request("GET /v1/__api__").repeat(60)),
  "200 pipelined requests": answered(request("GET /v1/").repeat(200)),
  "60,000 names in a query": answered(batch(`/subscriptions?${"a&".repeat(60_000)}`)),
  "3,000 fields": answered(
    request(`GET /v1/subscriptions?_fields=${"m.1,".repeat(3_000)}`, [hostile])
  )
}

const made: Record<string, number> = {}
const count = (kind: string) => {
  made[kind] = (made[kind] ?? 0) + 1
}
let clients = 0
const addressOf = (n: number): string => `127.0.0.${2 + (n % 8)}`

const one = async (kind: string, attack: Attack): Promise<void> => {
  const from = addressOf(clients++)
  await pause(Math.random() * 5_000, signal)
  while (!signal.aborted) {
    const client = await open({ port, from })
    count(client.isClosed() ? "closed at once" : kind)
    await attack(client)
    reset(client)
    await pause(betweenMillis, signal)
  }
}

/** Every ending in every phase, again and again. */
const endBadly = async (): Promise<void> => {
  while (!signal.aborted) {
    for (const phase of Object.keys(phases)) {
      const some = Object.keys(endings).map((ending, n) => {
        count(`ended by ${ending}`)
        return endIn({ port, from: addressOf(n) }, phase, ending)
      })
      await Promise.all(some)
      await pause(betweenMillis, signal)
      if (signal.aborted) return
    }
  }
}

const reports = setInterval(() => process.send?.(made), 1_000)
await Promise.all([
  endBadly(),
  ...Object.entries(kinds).flatMap(([kind, attack]) =>
    Array.from({ length: perKind }, () => one(kind, attack))
  )
])
clearInterval(reports)
process.send?.(made)
process.disconnect?.()
