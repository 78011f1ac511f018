// One request at a time per connection. Node starts pipelined requests side by side, so that a
// single connection could hold hundreds of answers in memory, and unsafe requests would run out
// of order (RFC 9112 section 9.3.2).
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Socket } from "node:net"

/** Requests of one connection that wait for the one before. Clients that pipeline send about ten. */
const waitingMax = 64

interface Turn {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly run: () => void
}

const connections = new WeakMap<Socket, Array<Turn>>()
/** Connections that sent more than may wait: closed when those that wait are answered. */
const overfull = new WeakSet<Socket>()

/**
 * Runs the next request of a connection. Called in a later round of the event loop: in the same
 * round the server would answer all requests of one connection before it reads any other.
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
 * Runs `turn` once the earlier requests of its connection are answered. False: too many wait; the
 * request is dropped, and the connection closed after the answers to those before it.
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

/** The requests of a connection that are not answered yet, the oldest first. */
export const unansweredOn = (socket: Socket): ReadonlyArray<Turn> => connections.get(socket) ?? []
