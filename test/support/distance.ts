// A TCP proxy that puts a distance between sender and push service: it delays each direction by
// half a round trip, and the first bytes of a connection by a whole one (the handshake of TCP). It
// can also stall one connection without closing it.
import { once } from "node:events"
import { type AddressInfo, connect, createServer, type Socket } from "node:net"

interface Pair {
  readonly client: Socket
  readonly upstream: Socket
  isStalled: boolean
}

/** Hands on what arrives, in its order, half a round trip later; nothing before `openAt`. */
const relay = (pair: Pair, from: Socket, to: Socket, delayMillis: number, openAt: number) => {
  const waiting: Array<() => void> = []
  const later = (run: () => void) => {
    if (pair.isStalled) return
    const millis = Math.max(0, openAt - performance.now()) + delayMillis
    if (millis === 0) return run()
    waiting.push(run)
    setTimeout(() => {
      const next = waiting.shift()!
      if (!pair.isStalled) next()
    }, millis)
  }
  from
    .on("data", (chunk) => later(() => to.write(chunk)))
    .on("end", () => later(() => to.end()))
    .on("close", () => later(() => to.destroy()))
    .on("error", () => {})
}

/** Listens on a free port and forwards to `port` of this machine. */
export const startDistance = async (port: number, roundTripMillis: number) => {
  const pairs = new Set<Pair>()
  let connections = 0
  const server = createServer((client) => {
    connections += 1
    const upstream = connect(port, "127.0.0.1").setNoDelay(true)
    const pair: Pair = { client: client.setNoDelay(true), upstream, isStalled: false }
    pairs.add(pair)
    client.once("close", () => pairs.delete(pair))
    const openAt = performance.now() + roundTripMillis
    relay(pair, client, upstream, roundTripMillis / 2, openAt)
    relay(pair, upstream, client, roundTripMillis / 2, openAt)
  }).listen(0, "127.0.0.1")
  await once(server, "listening")
  return {
    port: (server.address() as AddressInfo).port,
    /** Connections since the start. */
    connections: () => connections,
    /** The oldest open connection passes nothing more in either direction, but stays open. */
    stallOne: () => {
      const [oldest] = pairs
      if (oldest !== undefined) oldest.isStalled = true
    },
    [Symbol.asyncDispose]: async () => {
      for (const { client, upstream } of pairs)
        for (const socket of [client, upstream]) socket.destroy()
      server.close()
    }
  }
}
