// Closes idle connections: those that wait for the next request of their client.
// closeIdleConnections of Node.js also destroys connections whose last response the client is still
// reading.
import type { Socket } from "node:net"
import { unansweredOn } from "./pipelining.ts"

/** The bytes that a connection had received when its last response ended. */
const arrived = new WeakMap<Socket, number>()

/** Notes that a response ended: only further bytes belong to a new request. */
export const noteAnswered = (socket: Socket): void => void arrived.set(socket, socket.bytesRead)

/** Whether a connection has no open request and no unread response. */
export const isSilent = (socket: Socket): boolean =>
  unansweredOn(socket).length === 0 && socket.writableLength === 0

const isIdle = (socket: Socket): boolean =>
  isSilent(socket) && arrived.get(socket) === socket.bytesRead

/** Closes the connections that received nothing since their last response. */
export const closeIdle = (sockets: ReadonlySet<Socket>): void => {
  for (const socket of sockets) if (isIdle(socket)) socket.destroy()
}
