// A proxy before a nats-server: delays the data of one direction, or stops that of one or both,
// without closing connections.
import { once } from "node:events"
import { type AddressInfo, connect, createServer, type Socket } from "node:net"
import { Transform } from "node:stream"

export const startNatsProxy = async (url: string) => {
  const { hostname, port } = new URL(url)
  const pairs = new Set<{
    readonly client: Socket
    readonly late: Transform
    readonly upstream: Socket
  }>()
  let delayMillis = 0
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname)
    for (const socket of [client, upstream]) socket.on("error", () => {})
    client.pipe(upstream)
    const late: Transform = new Transform({
      // Timers of one length end in their order, so the end comes after the last chunk.
      transform: (chunk, _, done) => {
        setTimeout(() => late.push(chunk), delayMillis)
        done()
      },
      flush: (done) => {
        setTimeout(done, delayMillis)
      }
    })
    upstream.pipe(late).pipe(client)
    pairs.add({ client, late, upstream })
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const own = (server.address() as AddressInfo).port
  return {
    url: `nats://127.0.0.1:${own}`,
    /** Delays all that the server sends from now on. */
    delay: (millis: number) => {
      delayMillis = millis
    },
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
      for (const { late, upstream } of pairs) upstream.pipe(late)
    },
    [Symbol.asyncDispose]: async () => {
      for (const { client, upstream } of pairs)
        for (const socket of [client, upstream]) socket.destroy()
      server.close()
    }
  }
}
