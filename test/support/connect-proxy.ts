// A proxy that makes tunnels by CONNECT, on loopback, wherever the name of the target leads.
import { once } from "node:events"
import { createServer } from "node:http"
import { type AddressInfo, connect, type Socket } from "node:net"

export interface ConnectProxy extends AsyncDisposable {
  readonly url: string
  readonly port: number
  /** The targets that it was asked for, oldest first. */
  readonly asked: ReadonlyArray<string>
  /** The logins that it was shown. */
  readonly logins: ReadonlyArray<string | undefined>
  /** What it answers from now on: a status, or nothing. Undefined: it makes tunnels. */
  answer: number | "nothing" | undefined
}

export const startConnectProxy = async (): Promise<ConnectProxy> => {
  const asked: Array<string> = []
  const logins: Array<string | undefined> = []
  const sockets = new Set<Socket>()
  const server = createServer().on("connect", ({ headers, url = "" }, socket: Socket) => {
    asked.push(url)
    logins.push(headers["proxy-authorization"])
    sockets.add(socket.on("error", () => socket.destroy()))
    if (proxy.answer === "nothing") return
    if (proxy.answer !== undefined) {
      socket.end(`HTTP/1.1 ${proxy.answer} No\r\nContent-Length: 0\r\n\r\n`)
      return
    }
    const there = connect(Number(url.split(":").at(-1)), "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 Connected\r\nVia: 1.1 test\r\n\r\n")
      there.pipe(socket).pipe(there)
    })
    sockets.add(there.on("error", () => socket.destroy()))
    socket.on("close", () => there.destroy())
  })
  await once(server.listen(0, "127.0.0.1"), "listening")
  const { port } = server.address() as AddressInfo
  const proxy: ConnectProxy = {
    ...{ url: `http://127.0.0.1:${port}`, port, asked, logins, answer: undefined },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    }
  }
  return proxy
}
