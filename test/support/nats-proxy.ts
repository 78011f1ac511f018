// A proxy before a nats-server: stops the data of one or both directions without closing
// connections.
import { once } from "node:events"
import { type AddressInfo, connect, createServer, type Socket } from "node:net"

export const startNatsProxy = async (url: string) => {
  const { hostname, port } = new URL(url)
  const pairs = new Set<{ readonly client: Socket; readonly upstream: Socket }>()
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname)
    for (const socket of [client, upstream]) socket.on("error", () => {})
    client.pipe(upstream)
    upstream.pipe(client)
    pairs.add({ client, upstream })
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const own = (server.address() as AddressInfo).port
  return {
    url: `nats://127.0.0.1:${own}`,
    /** Nothing more passes on the connections there are. */
    silence: () => {
      for (const { client, upstream } of pairs)
        for (const socket of [client, upstream]) socket.unpipe().pause()
    },
    /** What the server says waits until `release`. */
    hold: () => {
      for (const { upstream } of pairs) upstream.unpipe().pause()
    },
    release: () => {
      for (const { client, upstream } of pairs) upstream.pipe(client)
    },
    [Symbol.asyncDispose]: async () => {
      for (const { client, upstream } of pairs)
        for (const socket of [client, upstream]) socket.destroy()
      server.close()
    }
  }
}
