// Every phase of a connection, and every way in which a client can end it there.
import { randomBytes } from "node:crypto"
import { authorization, type Client, type Origin, open, request, reset } from "./socket.ts"

const json = "Content-Type: application/json"
const upgrade = (protocol: string, ...more: ReadonlyArray<string>) =>
  request("GET /v1/", ["Connection: Upgrade", `Upgrade: ${protocol}`, ...more])
const answerMillis = 2_000

type Send = (client: Client) => Promise<void> | void

/** Writes a text, and waits for nothing. */
const write =
  (text: string | Buffer): Send =>
  ({ socket }) =>
    void socket.write(text)

/** Writes a text, and waits for the first byte of the answer. */
const exchange =
  (text: string): Send =>
  async (client) => {
    client.socket.write(text)
    await client.answered(answerMillis)
  }

/** Writes requests with large answers, and stops reading with the first byte of the first. */
const stopReading: Send = async (client) => {
  client.socket.once("data", () => client.socket.pause())
  client.socket.write(request("GET /v1/__api__").repeat(20))
  await client.answered(answerMillis)
}

const post = (...more: ReadonlyArray<string>) => {
  const own = ["Host: a", authorization("hostile"), json]
  const head = ["POST /v1/subscriptions HTTP/1.1", ...own, ...more]
  return `${head.join("\r\n")}\r\n\r\n`
}
const broadcast = request("POST /v1/channels/hostile", [authorization("hostile"), json], "{}")
const clientHello = Buffer.from("16030100c8010000c40303", "hex")

/** What a client sent, and read, before its connection ends. */
export const phases: Readonly<Record<string, Send>> = {
  "before a byte": () => {},
  "in the request line": write("GET /v1/subscri"),
  "in the headers": write("GET /v1/ HTTP/1.1\r\nHost: a\r\nX-A: "),
  "in the body": write(`${post("Content-Length: 500")}{"data":{`),
  "in a chunk": write(`${post("Transfer-Encoding: chunked")}1f4\r\n{"data":{`),
  "in a bad chunk": write(`${post("Transfer-Encoding: chunked")}zz\r\n{}\r\n`),
  "in a chunk of 2^64 bytes": write(`${post("Transfer-Encoding: chunked")}ffffffffffffffff0\r\n{}`),
  "after 100-continue": exchange(post("Content-Length: 500", "Expect: 100-continue")),
  "after an unknown expectation": write(post("Content-Length: 5", "Expect: tea")),
  "with more body than its length": write(`${post("Content-Length: 2")}{}{}{}{}`),
  "with two lengths": write(post("Content-Length: 2", "Content-Length: 3")),
  "after the request": write(broadcast),
  "in the answer": stopReading,
  "after the answer": exchange(request("GET /v1/__lbheartbeat__")),
  "after 200 pipelined requests": write(request("GET /v1/").repeat(200)),
  "after a head of 100 KB": write(request("GET /v1/", [`X-A: ${"a".repeat(100_000)}`])),
  "after CONNECT": write("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n"),
  "after the answer to CONNECT": exchange("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n"),
  "after an unknown method": write("BREW /v1/ HTTP/1.1\r\nHost: a\r\n\r\n"),
  "after Upgrade: h2c": write(
    upgrade("h2c", "HTTP2-Settings: AAMAAABkAAQAAP__").replace(
      ": Upgrade",
      ": Upgrade, HTTP2-Settings"
    )
  ),
  "after Upgrade: websocket": write(
    upgrade("websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")
  ),
  "after the answer to Upgrade": exchange(upgrade("websocket")),
  "after an Upgrade with a body": write(
    `${post("Connection: Upgrade", "Upgrade: h2c", "Content-Length: 500")}{"data"`
  ),
  "after the preface of HTTP/2": write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"),
  "after the start of a TLS handshake": write(clientHello)
}

/** A server that has not ended its side by then keeps the half-closed connection, which is fine. */
const halfClosedMillis = 500

/** How a client ends its connection. */
export const endings: Readonly<Record<string, Send>> = {
  reset,
  close: ({ socket }) => void socket.destroy(),
  "half-close": async (client) => {
    client.socket.end()
    await client.closed(halfClosedMillis)
    client.socket.destroy()
  },
  "garbage and reset": async (client) => {
    await new Promise<void>((resolve) => client.socket.write(randomBytes(300), () => resolve()))
    reset(client)
  }
}

/** Opens a connection, brings it to a phase and ends it there. */
export const endIn = async (origin: Origin, phase: string, ending: string): Promise<void> => {
  const client = await open(origin)
  await phases[phase]!(client)
  await endings[ending]!(client)
}
