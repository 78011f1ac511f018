// Bounds the number of connections: of all clients together, and of one address.
import type { Server } from "node:http"
import type { Socket } from "node:net"
import { makeShares } from "#basics/shares.ts"
import { accountOf, plainAddress } from "../../client-address.ts"
import { closeIdle } from "./idle.ts"

/** Refused connections that get a response at the same time. Further ones get none. */
const refusalsMax = 64

export interface ConnectionBounds {
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
