// A server at an address of loopback that loses SYNs, as a network does: its process is stopped and
// its queue of connections is full, so the kernel drops every SYN (Linux, tcp_abort_on_overflow 0).
// Once the process goes on, it takes the SYN that its client's kernel sends again after a second.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { connect, type Socket } from "node:net"
import { createInterface } from "node:readline"
import { elapsed } from "./quiet.ts"

const program = `
  const server = require("node:http").createServer((_, response) => response.end("{}"))
  server.keepAliveTimeout = 60_000
  server.listen({ host: process.argv[1], port: Number(process.argv[2]), backlog: 1 }, () =>
    console.log(server.address().port)
  )
`
/** A connection that takes longer on loopback waits for a SYN that was dropped. */
const droppedMillis = 200

export interface LossyServer extends AsyncDisposable {
  readonly port: number
  /** From now on it accepts connections and responds. */
  readonly resume: () => void
}

/** Starts a server that loses every SYN. `port` 0 takes a free one. */
export const startLossyServer = async (host: string, port = 0): Promise<LossyServer> => {
  const child = spawn(process.execPath, ["-e", program, host, String(port)], {
    stdio: ["ignore", "pipe", "inherit"]
  })
  const [line] = await once(createInterface(child.stdout), "line")
  const taken = Number(line)
  child.kill("SIGSTOP")
  const sockets: Array<Socket> = []
  const fills = async (): Promise<boolean> => {
    const socket = connect({ host, port: taken })
    sockets.push(socket)
    socket.on("error", () => {})
    const isOpen = once(socket, "connect").then(() => true)
    return Promise.race([isOpen, elapsed(droppedMillis).then(() => false)])
  }
  while (await fills());
  return {
    port: taken,
    resume: () => void child.kill("SIGCONT"),
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      const ended = once(child, "exit")
      child.kill("SIGKILL")
      await ended
    }
  }
}
