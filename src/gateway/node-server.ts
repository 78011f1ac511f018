// The socket server: what Node does by itself that the contract does not want.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { wireFaults } from "./faults.ts"

/** What arrives slower than this is no request (a body is at most a few KiB). */
const requestTimeoutMillis = 30_000

/** Node answers what is no HTTP without a body; every error of ours has one. */
const refuseBroken = (error: NodeJS.ErrnoException, socket: Socket): void => {
  if (error.code === "ECONNRESET" || !socket.writable) return void socket.destroy()
  const row = wireFaults[error.code as "other"] ?? wireFaults.other
  const body = JSON.stringify(row)
  const head = [
    `HTTP/1.1 ${row.code} ${row.error}`,
    "Content-Type: application/json; charset=UTF-8",
    `Content-Length: ${Buffer.byteLength(body)}`,
    "X-Content-Type-Options: nosniff",
    "Connection: close"
  ]
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`)
}

export const makeServer = (): Server => {
  const server = createServer({ requestTimeout: requestTimeoutMillis })
  // A connection that falls idle while the server closes would keep it open until its keep-alive ends (5 s).
  const watch = (_: IncomingMessage, response: ServerResponse) => {
    response.once("close", () => {
      if (!server.listening) setImmediate(() => server.closeIdleConnections())
    })
  }
  return server.on("request", watch).on("checkContinue", watch).on("clientError", refuseBroken)
}
