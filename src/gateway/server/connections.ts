// How many connections there may be, in all and from one address.
import type { Server } from "node:http"
import type { Socket } from "node:net"
import { accountOf, plainAddress } from "./address.ts"
import { closeIdle } from "./idle.ts"
import { makeShares } from "./shares.ts"

/** Connections that are told why they are refused, at once; more are closed without a word. */
const refusalsMax = 64

export interface ConnectionBounds {
  readonly max: number
  readonly perAddressMax: number
  /** A proxy's connections are its clients': they are not counted under its address. */
  readonly isTrusted: (address: string) => boolean
  /** Answers a connection beyond the bound of its address, and closes it. */
  readonly refuse: (socket: Socket) => void
  readonly refused: (bound: "connections" | "address", address: string) => void
}

/** Keeps a server within its bounds. Returns its connections. */
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
  // Node's own listener makes the socket a HTTP connection: a refused one never becomes that.
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
    // Clients open an idle connection again when they need it.
    closeIdle(sockets)
  })
  return sockets
}
