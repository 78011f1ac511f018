// Connections that wait for their client's next request. Node's closeIdleConnections also destroys
// those whose last answer is still being read, and cuts that answer in the middle.
import type { Socket } from "node:net"
import { unansweredOn } from "./turns.ts"

/** Bytes that had arrived when the last answer of a connection was taken. */
const arrived = new WeakMap<Socket, number>()

/** Notes that all that has arrived on a connection is answered. */
export const noteAnswered = (socket: Socket): void => void arrived.set(socket, socket.bytesRead)

/** Whether no request of a connection waits for an answer, and no answer for its reader. */
export const isSilent = (socket: Socket): boolean =>
  unansweredOn(socket).length === 0 && socket.writableLength === 0

const isIdle = (socket: Socket): boolean =>
  isSilent(socket) && arrived.get(socket) === socket.bytesRead

/** Closes the connections on which nothing has begun to arrive since their last answer. */
export const closeIdle = (sockets: ReadonlySet<Socket>): void => {
  for (const socket of sockets) if (isIdle(socket)) socket.destroy()
}
