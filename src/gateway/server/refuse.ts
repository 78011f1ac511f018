// Answers written onto a socket that no request of Node's owns: what is no HTTP, CONNECT, and
// connections beyond the bounds.
import type { Duplex } from "node:stream"
import { reasonPhrase } from "../http/reason-phrase.ts"
import type { ApiResponse } from "../http/request.ts"
import { constantHeaders } from "../http/response-headers.ts"

/** How long a peer has to read the answer before its socket is destroyed. */
const lingerMillis = 1_000

const textOf = ({ body, headers, status }: ApiResponse): string => {
  const text = JSON.stringify(body ?? null)
  const all = { ...constantHeaders, ...headers }
  const head = [
    `HTTP/1.1 ${status} ${reasonPhrase(status)}`,
    ...Object.entries(all).map(([name, value]) => `${name}: ${value}`),
    "Content-Type: application/json; charset=UTF-8",
    `Content-Length: ${Buffer.byteLength(text)}`,
    "Connection: close"
  ]
  return `${head.join("\r\n")}\r\n\r\n${text}`
}

/** Keeps an error of this socket from ending the process; every error is followed by `close`. */
export const guardSocket = (socket: Duplex): void => void socket.on("error", () => {})

/** Answers and closes, whatever the peer does. */
export const refuseOn = (socket: Duplex, answer: ApiResponse): void => {
  guardSocket(socket)
  // Bytes left unread would turn the close into a reset, which can overtake the answer.
  socket.resume()
  socket.end(textOf(answer))
  const timer = setTimeout(() => socket.destroy(), lingerMillis)
  socket.once("close", () => clearTimeout(timer))
}
