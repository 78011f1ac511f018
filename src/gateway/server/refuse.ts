// Writes responses to sockets without a request of Node.js: invalid HTTP, CONNECT, and connections
// beyond the limits.
import type { Duplex } from "node:stream"
import { reasonPhrase } from "../http/error-table.ts"
import type { ApiResponse } from "../http/request.ts"
import { constantHeaders } from "../http/response-headers.ts"

/** How long a peer may take to read the response before its socket is destroyed. */
const lingerMillis = 1_000

const textOf = ({ body, headers, status }: ApiResponse): string => {
  const text = JSON.stringify(body ?? null)
  const all = { ...constantHeaders, ...headers }
  const head = [
    `HTTP/1.1 ${status} ${reasonPhrase(status)}`,
    ...Object.entries(all).map(([name, value]) => `${name}: ${value}`),
    // RFC 9110 section 6.6.1. Node.js adds one to all other responses.
    `Date: ${new Date().toUTCString()}`,
    "Content-Type: application/json; charset=UTF-8",
    `Content-Length: ${Buffer.byteLength(text)}`,
    "Connection: close"
  ]
  return `${head.join("\r\n")}\r\n\r\n${text}`
}

/** Ignores errors of a socket, which would end the process. `close` follows every error. */
export const guardSocket = (socket: Duplex): void => void socket.on("error", () => {})

/** Writes a response and closes the socket, even if the peer does not read. */
export const refuseOn = (socket: Duplex, response: ApiResponse): void => {
  guardSocket(socket)
  // Read on: unread bytes would make the close a reset, which can overtake the response.
  socket.resume()
  socket.end(textOf(response))
  const timer = setTimeout(() => socket.destroy(), lingerMillis)
  socket.once("close", () => clearTimeout(timer))
}
