// Runs one request at a time per connection. Node.js starts pipelined requests side by side: a
// single connection could then hold hundreds of responses in memory, and unsafe requests would run
// out of order (RFC 9112 section 9.3.2).
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Socket } from "node:net"

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
 * Runs the next request of a connection. Call this in a later round of the event loop: in the same
 * round, the server would run all requests of one connection before it reads from another.
 */
const runNext = (socket: Socket, queue: ReadonlyArray<Turn>): void => {
  if (!socket.destroyed) queue[0]?.run()
}

const endTurn = (socket: Socket, queue: Array<Turn>): void => {
  queue.shift()
  if (socket.destroyed) queue.length = 0
  else if (queue.length > 0) setImmediate(runNext, socket, queue)
  else if (overfull.has(socket)) socket.destroySoon()
}

/**
 * Runs `turn` after the responses to earlier requests of its connection. False when too many wait:
 * then the request is dropped, and the connection closes after the earlier responses.
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

/** The requests of a connection without a complete response, the oldest first. */
export const unansweredOn = (socket: Socket): ReadonlyArray<Turn> => connections.get(socket) ?? []
