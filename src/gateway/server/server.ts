// The sockets of the HTTP server: timeouts and limits, one request at a time per connection, and
// JSON responses where Node.js has its own: parse errors, unknown methods, CONNECT.
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import { type AddressInfo, Server as NetServer, type Socket } from "node:net"
import type { Duplex } from "node:stream"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { makeShares } from "#basics/limits.ts"
import { accountOf, plainAddress } from "../client-address.ts"
import { reasonPhrase } from "../http/error-table.ts"
import { createServer } from "../http/node-http.ts"
import { type ApiResponse, parserErrorResponse } from "../http/response.ts"
import { headersOfEvery } from "../http/response-headers.ts"

/** How long the head of a request may take to arrive, also when no byte arrives. */
const headersMillis = 10_000
/** How long a whole request may take to arrive. Bodies have at most some hundred KiB. */
const requestMillis = 30_000
/** How often Node.js checks the two timeouts above. Its default of 30 s would double them. */
const checkMillis = 2_000
/** Longer than the 60 s of proxies, which might reuse a connection while this server closes it. */
const keepAliveMillis = 75_000

type Handle = (request: IncomingMessage, response: ServerResponse) => void

/** The first line of a request, and who sends it. */
export interface RequestLine {
  readonly method: string
  readonly target: string
  readonly peer: string | undefined
  /** X-Forwarded-For, where Node.js has read the headers. */
  readonly forwarded?: string | undefined
}

/** The response to a method that Node.js does not know, or to CONNECT. */
type RespondToLine = (line: RequestLine) => Promise<ApiResponse>

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

/** HTTP cannot be served: the address is in use, or not an address of this machine. */
export class ServeError extends Data.TaggedError("ServeError")<{ readonly cause: Error }> {}

/** Succeeds with the port: any free one if `port` is 0. */
export const listen = (
  server: Server,
  host: string,
  port: number
): Effect.Effect<number, ServeError> =>
  Effect.callback((resume) => {
    const fail = (cause: Error) => resume(Effect.fail(new ServeError({ cause })))
    server.once("error", fail).listen({ host, port }, () => {
      server.off("error", fail)
      resume(Effect.succeed((server.address() as AddressInfo).port))
    })
  })

/** How long running requests may take after the process was told to stop. */
const shutdownMillis = 10_000
/** How long a request that has begun to arrive may take to arrive after that. */
const arrivingMillis = 1_000
/** How often a closing server looks for idle connections. */
const idleCheckMillis = 50

/** Finishes the running requests. Closes idle connections at once. */
export const close = (server: Server, sockets: ReadonlySet<Socket>): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const last = setTimeout(() => server.closeAllConnections(), shutdownMillis)
    const began = performance.now()
    const check = () => {
      closeIdle(sockets)
      if (performance.now() - began < arrivingMillis) return
      for (const socket of sockets) if (isSilent(socket)) socket.destroy()
    }
    const checks = setInterval(check, idleCheckMillis)
    // Not close() of node:http, which begins with closeIdleConnections: see closeIdle.
    NetServer.prototype.close.call(server, () => {
      clearTimeout(last)
      clearInterval(checks)
      resume(Effect.void)
    })
    check()
  })

/** Refused connections that get a response at the same time. Further ones get none. */
const refusalsMax = 64

interface ConnectionBounds {
  readonly max: number
  readonly perAddressMax: number
  /** Whether an address is a trusted proxy. Its connections have no limit per address. */
  readonly isTrusted: (address: string) => boolean
  /** Responds to a connection beyond the limit of its address, and closes it. */
  readonly refuse: (socket: Socket) => void
  /** Called for each refused connection. */
  readonly refused: (bound: "connections" | "address", address: string) => void
}

/** Bounds a server's connections, and returns the set of open ones. */
export const boundConnections = (server: Server, bounds: ConnectionBounds): ReadonlySet<Socket> => {
  const { isTrusted, max, perAddressMax, refuse, refused } = bounds
  const shares = makeShares(perAddressMax)
  const sockets = new Set<Socket>()
  let refusals = 0
  const admit = (socket: Socket): boolean => {
    const address = plainAddress(socket.remoteAddress)
    if (isTrusted(address)) return true
    const account = accountOf(address)
    if (shares.take(account, 1)) {
      socket.once("close", () => shares.give(account, 1))
      return true
    }
    refused("address", account)
    return false
  }
  // The listeners of Node.js start to parse HTTP. Run them only for admitted connections.
  const accept = server.listeners("connection")
  server.removeAllListeners("connection")
  server.on("connection", (socket: Socket) => {
    if (admit(socket)) {
      sockets.add(socket)
      socket.once("close", () => sockets.delete(socket))
      for (const listener of accept) listener.call(server, socket)
    } else if (refusals < refusalsMax) {
      refusals += 1
      socket.once("close", () => {
        refusals -= 1
      })
      refuse(socket)
    } else socket.destroy()
  })
  server.maxConnections = max
  server.on("drop", () => {
    refused("connections", "")
    // Make room: clients open idle connections again when they need them.
    closeIdle(sockets)
  })
  return sockets
}

interface ParseError extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer
  /** The bytes of the packet before the error. */
  readonly bytesParsed?: number
}

/** Connections that had an error. Node.js reports each later chunk as another error. */
const broken = new WeakSet<Socket>()

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
    else refuseLine(socket, respondToLine({ ...line, peer: socket.remoteAddress }))
  }
  const unanswered = unansweredOn(socket)
  const newest = unanswered.at(-1)
  if (newest === undefined || newest.request.complete) afterResponses(socket, refuse)
  else if (unanswered.length === 1 && !newest.response.headersSent) refuse()
  else socket.destroy()
}

/** The method and target of a request whose only error is an unknown method. */
const lineOf = ({
  bytesParsed = 0,
  code,
  rawPacket
}: ParseError): Pick<RequestLine, "method" | "target"> | undefined => {
  if (code !== "HPE_INVALID_METHOD" || rawPacket === undefined) return undefined
  const line = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+) (\S+) HTTP\/1\.[01]\r\n/
  const [, method, target] = line.exec(rawPacket.toString("latin1")) ?? []
  // Further bytes were parsed: the error is in a later request of the same packet.
  const isFirst = method !== undefined && bytesParsed <= method.length
  return isFirst && target !== undefined ? { method, target } : undefined
}

const refuseConnect = (
  { headers, method = "", url: target = "" }: IncomingMessage,
  socket: Socket,
  respondToLine: RespondToLine
) => {
  // Node.js removed its error handler from the socket: a reset now would end the process.
  guardSocket(socket)
  const forwarded = headers["x-forwarded-for"] as string | undefined
  const line = { method, target, peer: socket.remoteAddress, forwarded }
  afterResponses(socket, () => refuseLine(socket, respondToLine(line)))
}

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

/** How long a peer may take to read the response before its socket is destroyed. */
const lingerMillis = 1_000

/**
 * Writes a response to a socket without a request of Node.js, and closes it, even if the peer does
 * not read.
 */
export const refuseOn = (socket: Duplex, response: ApiResponse): void => {
  guardSocket(socket)
  // Read on: unread bytes would make the close a reset, which can overtake the response.
  socket.resume()
  socket.end(textOf(response))
  const timer = setTimeout(() => socket.destroy(), lingerMillis)
  socket.once("close", () => clearTimeout(timer))
}

const textOf = ({ body, headers, status }: ApiResponse): string => {
  const text = JSON.stringify(body ?? null)
  const all = { ...headersOfEvery(status), ...headers }
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
const guardSocket = (socket: Duplex): void => void socket.on("error", () => {})

/** The most requests of one connection that wait. Clients that pipeline send about ten. */
const waitingMax = 64

interface Turn {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly run: () => void
}

const connections = new WeakMap<Socket, Array<Turn>>()
/** Connections with too many requests: closed after the responses to the waiting ones. */
const overfull = new WeakSet<Socket>()

/**
 * Runs `turn` after the responses to earlier requests of its connection. Node.js starts pipelined
 * requests side by side: a single connection could then hold hundreds of responses in memory, and
 * unsafe requests would run out of order (RFC 9112 section 9.3.2). False when too many wait: then
 * the request is dropped, and the connection closes after the earlier responses.
 */
export const inTurn = (turn: Turn): boolean => {
  const { socket } = turn.request
  const queue = connections.get(socket) ?? []
  if (queue.length > waitingMax || overfull.has(socket)) {
    overfull.add(socket)
    socket.pause()
    return false
  }
  if (queue.push(turn) === 1) connections.set(socket, queue)
  turn.response.once("close", () => endTurn(socket, queue))
  if (queue.length === 1) turn.run()
  return true
}

const endTurn = (socket: Socket, queue: Array<Turn>): void => {
  queue.shift()
  if (socket.destroyed) queue.length = 0
  else if (queue.length > 0) setImmediate(runNext, socket, queue)
  else if (overfull.has(socket)) socket.destroySoon()
}

/**
 * Runs the next request of a connection. Call this in a later round of the event loop: in the same
 * round, the server would run all requests of one connection before it reads from another.
 */
const runNext = (socket: Socket, queue: ReadonlyArray<Turn>): void => {
  if (!socket.destroyed) queue[0]?.run()
}

/** The requests of a connection without a complete response, the oldest first. */
const unansweredOn = (socket: Socket): ReadonlyArray<Turn> => connections.get(socket) ?? []

/** The bytes that a connection had received when its last response ended. */
const arrived = new WeakMap<Socket, number>()

/** Notes that a response ended: only further bytes belong to a new request. */
export const noteAnswered = (socket: Socket): void => void arrived.set(socket, socket.bytesRead)

/**
 * Closes idle connections: those that received nothing since their last response. Not
 * closeIdleConnections of Node.js, which also destroys those whose client still reads a response.
 */
const closeIdle = (sockets: ReadonlySet<Socket>): void => {
  for (const socket of sockets) if (isIdle(socket)) socket.destroy()
}

const isIdle = (socket: Socket): boolean =>
  isSilent(socket) && arrived.get(socket) === socket.bytesRead

/** Whether a connection has no open request and no unread response. */
const isSilent = (socket: Socket): boolean =>
  unansweredOn(socket).length === 0 && socket.writableLength === 0
