// The socket server: what Node does by itself that the contract does not want.
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  STATUS_CODES
} from "node:http"
import type { Duplex } from "node:stream"
import type { Answer } from "./ask.ts"
import { constantHeaders } from "./decorate.ts"
import { wireAnswer } from "./faults.ts"

/** What arrives slower than this is no request (a body is at most a few KiB). */
const requestTimeoutMillis = 30_000

/** Longer than the 60 s for which proxies keep theirs: one that we close first may just have been given a request. */
const keepAliveMillis = 75_000

interface ParseError extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer
  /** Of the packet, until something was wrong. */
  readonly bytesParsed?: number
}

/** The first line of a request when its method is the only thing wrong with it. */
const lineOf = ({
  bytesParsed = 0,
  code,
  rawPacket
}: ParseError): readonly [method: string, target: string] | undefined => {
  if (code !== "HPE_INVALID_METHOD" || rawPacket === undefined) return undefined
  const [, method, target] =
    /^([!#$%&'*+.^_`|~0-9A-Za-z-]+) (\S+) HTTP\/1\.[01]\r\n/.exec(rawPacket.toString("latin1")) ??
    []
  // Behind the first method: it is another request of the same packet.
  return method === undefined || target === undefined || bytesParsed > method.length
    ? undefined
    : [method, target]
}

/** What Node refuses by itself it answers without a body, or not at all; every error of ours has one. */
const end = (socket: Duplex, { body, headers, status }: Answer): void => {
  const text = JSON.stringify(body ?? null)
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    ...Object.entries({ ...constantHeaders, ...headers }).map(
      ([name, value]) => `${name}: ${value}`
    ),
    "Content-Type: application/json; charset=UTF-8",
    `Content-Length: ${Buffer.byteLength(text)}`,
    "Connection: close"
  ]
  socket.end(`${head.join("\r\n")}\r\n\r\n${text}`)
}

/** `answer`: what is said to a method that Node does not know or keeps for itself. */
export const makeServer = (answer: (method: string, target: string) => Promise<Answer>): Server => {
  const server = createServer({
    requestTimeout: requestTimeoutMillis,
    keepAliveTimeout: keepAliveMillis,
    requireHostHeader: false
  })
  const endWith = (socket: Duplex, method: string, target: string): void =>
    void answer(method, target).then(
      (told) => end(socket, told),
      () => socket.destroy()
    )
  const refuseBroken = (error: ParseError, socket: Duplex): void => {
    if (error.code === "ECONNRESET" || !socket.writable) return void socket.destroy()
    const line = lineOf(error)
    if (line === undefined) end(socket, wireAnswer(error.code))
    else endWith(socket, ...line)
  }
  // A connection that falls idle while the server closes would keep it open until its keep-alive ends.
  const watch = (_: IncomingMessage, response: ServerResponse) => {
    response.once("close", () => {
      if (!server.listening) setImmediate(() => server.closeIdleConnections())
    })
  }
  // Clients that speak HTTP/2 offer it with whatever request comes first (Java's does by default), and where somebody listens for such offers
  // Node reads no body: a broadcast would go out empty. An offer may be ignored (RFC 9110 section 7.8). (shouldUpgradeCallback: from Node 24.9.)
  const ignoreUpgrades = (event: string | symbol, listener: () => void) => {
    if (event === "upgrade") process.nextTick(() => server.off(event, listener))
  }
  return (
    server
      .on("newListener", ignoreUpgrades)
      .on("request", watch)
      .on("checkContinue", watch)
      // What a client expects beyond 100-continue is its own affair (RFC 9110 section 10.1.1).
      .on("checkExpectation", (request, response) => server.emit("request", request, response))
      .on("connect", ({ method = "", url = "" }, socket) => endWith(socket, method, url))
      .on("clientError", refuseBroken)
  )
}
