// Node's HTTP server with the time-outs, and the answers to what Node would refuse by itself.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { wireErrorResponse } from "../http/errors.ts"
import type { ApiResponse } from "../http/request.ts"
import { guardSocket, refuseOn } from "./refuse.ts"
import { unansweredOn } from "./turns.ts"

/** How long the line and headers of a request may take to arrive, from the first byte or none. */
const headersMillis = 10_000
/** How long a whole request may take to arrive. A body has at most some hundred KiB. */
const requestMillis = 30_000
/** How often Node looks for requests that take too long; its own default of 30 s doubles them. */
const checkMillis = 2_000
/** Longer than the 60 s of proxies: they may reuse a connection at the moment that we close it. */
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
  const line = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+) (\S+) HTTP\/1\.[01]\r\n/
  const [, method, target] = line.exec(rawPacket.toString("latin1")) ?? []
  // Behind the first method: it is another request of the same packet.
  const isFirst = method !== undefined && bytesParsed <= method.length
  return isFirst && target !== undefined ? [method, target] : undefined
}

/** Answers a method that Node does not know or keeps for itself. */
export type RespondToLine = (method: string, target: string) => Promise<ApiResponse>

/** Connections that are closed after an error: Node reports each further chunk as one more. */
const broken = new WeakSet<Socket>()

/** Runs `refuse` once the requests before it are answered, in the place of the next answer. */
const afterResponses = (socket: Socket, refuse: () => void): void => {
  const newest = unansweredOn(socket).at(-1)
  if (newest === undefined) refuse()
  else newest.response.once("close", refuse)
}

const refuseLine = (socket: Socket, line: Promise<ApiResponse>): void =>
  void line.then(
    (answer) => refuseOn(socket, answer),
    () => socket.destroy()
  )

/**
 * A parse error closes the connection. Requests before it that have arrived whole are answered
 * first; a request that is broken itself gets the refusal in the place of its answer.
 */
const refuseBroken = (error: ParseError, socket: Socket, respondToLine: RespondToLine): void => {
  if (broken.has(socket)) return
  broken.add(socket)
  if (error.code === "ECONNRESET" || !socket.writable) return void socket.destroy()
  // What follows must neither be parsed nor kept while earlier answers are being read.
  socket.pause()
  const { code } = error
  const line = lineOf(error)
  const refuse = () => {
    if (line === undefined) refuseOn(socket, wireErrorResponse(code))
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
  // Node takes its error handler off the socket: a reset now would end the process.
  guardSocket(socket)
  afterResponses(socket, () => refuseLine(socket, respondToLine(method, url)))
}

type Handle = (request: IncomingMessage, response: ServerResponse) => void

/** A server that does not listen yet. `handle` gets every request, also one of `Expect`. */
export const makeServer = (handle: Handle, respondToLine: RespondToLine): Server => {
  const options = {
    headersTimeout: headersMillis,
    requestTimeout: requestMillis,
    connectionsCheckingInterval: checkMillis,
    keepAliveTimeout: keepAliveMillis,
    requireHostHeader: false
  }
  const server = createServer(options)
  // Without this Node drops the answer to a client that has closed its half, as `nc -N` does.
  Object.assign(server, { httpAllowHalfOpen: true })
  // Nobody listens for `upgrade`: Node then ignores the offer and reads the request as any other,
  // with its body (RFC 9110 section 7.8). Java's client offers HTTP/2 with its first request.
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
