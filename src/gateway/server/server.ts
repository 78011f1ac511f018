// The HTTP server of Node.js with timeouts, and JSON responses where Node.js has its own: parse
// errors, unknown methods, CONNECT.
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { parserErrorResponse } from "../http/errors.ts"
import { createServer } from "../http/node-http.ts"
import type { ApiResponse } from "../http/request.ts"
import { unansweredOn } from "./bounds/pipelining.ts"
import { guardSocket, refuseOn } from "./refuse.ts"

/** How long the head of a request may take to arrive, also when no byte arrives. */
const headersMillis = 10_000
/** How long a whole request may take to arrive. Bodies have at most some hundred KiB. */
const requestMillis = 30_000
/** How often Node.js checks the two timeouts above. Its default of 30 s would double them. */
const checkMillis = 2_000
/** Longer than the 60 s of proxies, which might reuse a connection while this server closes it. */
const keepAliveMillis = 75_000

interface ParseError extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer
  /** The bytes of the packet before the error. */
  readonly bytesParsed?: number
}

/** The method and target of a request whose only error is an unknown method. */
const lineOf = ({
  bytesParsed = 0,
  code,
  rawPacket
}: ParseError): readonly [method: string, target: string] | undefined => {
  if (code !== "HPE_INVALID_METHOD" || rawPacket === undefined) return undefined
  const line = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+) (\S+) HTTP\/1\.[01]\r\n/
  const [, method, target] = line.exec(rawPacket.toString("latin1")) ?? []
  // Further bytes were parsed: the error is in a later request of the same packet.
  const isFirst = method !== undefined && bytesParsed <= method.length
  return isFirst && target !== undefined ? [method, target] : undefined
}

/** The response to a method that Node.js does not know, or to CONNECT. */
export type RespondToLine = (method: string, target: string) => Promise<ApiResponse>

/** Connections that had an error. Node.js reports each later chunk as another error. */
const broken = new WeakSet<Socket>()

/** Runs `refuse` after the responses to earlier requests, in the place of the next response. */
const afterResponses = (socket: Socket, refuse: () => void): void => {
  const newest = unansweredOn(socket).at(-1)
  if (newest === undefined) refuse()
  else newest.response.once("close", refuse)
}

const refuseLine = (socket: Socket, line: Promise<ApiResponse>): void =>
  void line.then(
    (response) => refuseOn(socket, response),
    () => socket.destroy()
  )

/**
 * Closes a connection after a parse error. Complete requests before the error get their responses
 * first. An incomplete request gets the error as its response.
 */
const refuseBroken = (error: ParseError, socket: Socket, respondToLine: RespondToLine): void => {
  if (broken.has(socket)) return
  broken.add(socket)
  if (error.code === "ECONNRESET" || !socket.writable) return void socket.destroy()
  // Do not parse or buffer further bytes while the client reads earlier responses.
  socket.pause()
  const { code } = error
  const line = lineOf(error)
  const refuse = () => {
    if (line === undefined) refuseOn(socket, parserErrorResponse(code ?? ""))
    else refuseLine(socket, respondToLine(...line))
  }
  const unanswered = unansweredOn(socket)
  const newest = unanswered.at(-1)
  if (newest === undefined || newest.request.complete) afterResponses(socket, refuse)
  else if (unanswered.length === 1 && !newest.response.headersSent) refuse()
  else socket.destroy()
}

const refuseConnect = (
  { method = "", url = "" }: IncomingMessage,
  socket: Socket,
  respondToLine: RespondToLine
) => {
  // Node.js removed its error handler from the socket: a reset now would end the process.
  guardSocket(socket)
  afterResponses(socket, () => refuseLine(socket, respondToLine(method, url)))
}

type Handle = (request: IncomingMessage, response: ServerResponse) => void

/** A server that does not listen yet. `handle` gets every request, also one with `Expect`. */
export const makeServer = (handle: Handle, respondToLine: RespondToLine): Server => {
  const options = {
    headersTimeout: headersMillis,
    requestTimeout: requestMillis,
    connectionsCheckingInterval: checkMillis,
    keepAliveTimeout: keepAliveMillis,
    requireHostHeader: false
  }
  const server = createServer(options)
  // Without this Node.js drops the response to a half-closed connection, such as that of `nc -N`.
  Object.assign(server, { httpAllowHalfOpen: true })
  // Without a listener for `upgrade` Node.js ignores the header and reads the request as any other
  // (RFC 9110 section 7.8). The HTTP client of Java offers HTTP/2 with its first request.
  return (
    server
      .on("request", handle)
      .on("checkContinue", handle)
      // Other expectations than 100-continue may be ignored (RFC 9110 section 10.1.1).
      .on("checkExpectation", handle)
      .on("connect", (request, socket) => refuseConnect(request, socket as Socket, respondToLine))
      .on("clientError", (error: ParseError, socket) =>
        refuseBroken(error, socket as Socket, respondToLine)
      )
  )
}
