// Ports of loopback that nobody listens on.
import { once } from "node:events"
import { createServer } from "node:net"

/**
 * All different, and below the ports of outgoing connections (32768 and up), so that no such
 * connection takes one while its process is down.
 */
export const freePorts = async (count: number): Promise<ReadonlyArray<number>> => {
  const ports = new Set<number>()
  while (ports.size < count) {
    const port = 10_000 + Math.floor(Math.random() * 20_000)
    const server = createServer().listen(port, "127.0.0.1")
    const isFree = await once(server, "listening").then(
      () => true,
      () => false
    )
    server.close()
    if (isFree) ports.add(port)
  }
  return [...ports]
}
