// Ports for servers whose address must be known before they start. Other servers listen at port 0
// and say which port they got.
import { createSocket } from "node:dgram"
import { once } from "node:events"
import { createServer } from "node:net"

/** Whether the socket could be bound to its port. */
const isBound = (socket: NodeJS.EventEmitter): Promise<boolean> =>
  once(socket, "listening").then(
    () => true,
    () => false
  )

/** Whether nobody listens on the TCP port. */
const isFree = async (port: number): Promise<boolean> => {
  const server = createServer().listen(port, "127.0.0.1")
  const bound = await isBound(server)
  server.close()
  return bound
}

/** Listens at the port, if nobody does, until it is disposed: a service takes another port. */
export const keepBusy = async (port: number): Promise<Disposable> => {
  const server = createServer().listen(port, "127.0.0.1")
  await isBound(server)
  return { [Symbol.dispose]: () => void server.close() }
}

/**
 * A free TCP port of loopback that no other caller gets, in any process of the tests, while this
 * process lives: a UDP socket on the same port marks it. It is below the ports of outgoing
 * connections (32768 and up), so that no such connection takes it.
 */
export const claimPort = async (): Promise<number> => {
  while (true) {
    const port = 10_000 + Math.floor(Math.random() * 20_000)
    const mark = createSocket("udp4").bind({ port, address: "127.0.0.1", exclusive: true }).unref()
    if (!(await isBound(mark))) continue
    if (await isFree(port)) return port
    mark.close()
  }
}
