// A hostile push service: it accepts so many pushes as any other, so that it is sent many at once,
// and then does what its kind does (push-kinds.ts), on every connection and for every request.
import { once } from "node:events"
import type { AddressInfo } from "node:net"
import { createServer, type TLSSocket } from "node:tls"
import { testCertificate } from "../tls.ts"
import { frame, http2Response, type PushKind } from "./push-kinds.ts"

/** How long an accepted push takes, so that many are under way at once. */
const acceptMillis = 100
const created = "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

export interface HostileOptions {
  /** Pushes accepted before the first attack. */
  readonly accepts?: number
}

export interface HostileCounts {
  requests: number
  attacked: number
  connections: number
  /** Open at the same time, at most. */
  most: number
  open: number
}

type OnRequest = (stream: number) => void

/** Reads requests of HTTP/1.1 with Content-Length. */
const http1Reader = (onRequest: OnRequest) => {
  let received = Buffer.alloc(0)
  return (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
    while (true) {
      const end = received.indexOf("\r\n\r\n")
      if (end < 0) return
      const head = received.toString("latin1", 0, end)
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
      if (received.length < end + 4 + length) return
      received = received.subarray(end + 4 + length)
      onRequest(0)
    }
  }
}

/** Reads frames of HTTP/2; a request is over with END_STREAM. */
const http2Reader = (socket: TLSSocket, onRequest: OnRequest) => {
  let received = Buffer.alloc(0)
  let skips = preface.length
  socket.write(frame(4, 0, 0))
  return (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
    while (received.length >= skips + 9) {
      const length = received.readUIntBE(skips, 3)
      if (received.length < skips + 9 + length) return
      const [type, flags] = [received[skips + 3]!, received[skips + 4]!]
      const stream = received.readUInt32BE(skips + 5)
      received = received.subarray(skips + 9 + length)
      skips = 0
      if (type === 4 && (flags & 1) === 0) socket.write(frame(4, 1, 0))
      if ((type === 0 || type === 1) && (flags & 1) === 1) onRequest(stream)
    }
  }
}

const flood = (socket: TLSSocket, part: Buffer) => {
  const pump = () => {
    while (!socket.destroyed && socket.write(part));
  }
  socket.on("drain", pump)
  pump()
}

const attack = (socket: TLSSocket, kind: PushKind, stream: number, isFirst: boolean) => {
  socket.write(kind.begin(stream))
  if (kind.closes) socket.end()
  const part = kind.again?.(stream)
  // One flood fills a connection.
  if (part === undefined || !isFirst) return
  if (kind.every === undefined) return flood(socket, part)
  const timer = setInterval(() => socket.write(part), kind.every)
  socket.once("close", () => clearInterval(timer))
}

export const startHostile = async (kind: PushKind, { accepts = 0 }: HostileOptions = {}) => {
  const counts: HostileCounts = { requests: 0, attacked: 0, connections: 0, most: 0, open: 0 }
  const sockets = new Set<TLSSocket>()
  const options = { ...testCertificate(), ALPNProtocols: [kind.http2 ? "h2" : "http/1.1"] }
  const server = createServer(options, (socket) => {
    let isAttacked = false
    sockets.add(socket)
    counts.connections += 1
    counts.most = Math.max(counts.most, sockets.size)
    const accept = (stream: number) => {
      const response = kind.http2 ? http2Response(stream, 201) : created
      setTimeout(() => !socket.destroyed && socket.write(response), acceptMillis)
    }
    const onRequest = (stream: number) => {
      counts.requests += 1
      if (counts.requests <= accepts) return accept(stream)
      counts.attacked += 1
      attack(socket, kind, stream, !isAttacked)
      isAttacked = true
    }
    socket
      .on("data", kind.http2 ? http2Reader(socket, onRequest) : http1Reader(onRequest))
      .on("error", () => {})
      .on("close", () => sockets.delete(socket))
  })
  server.on("tlsClientError", () => {}).listen(0, "127.0.0.1")
  await once(server, "listening")
  return {
    origin: `https://localhost:${(server.address() as AddressInfo).port}`,
    counts: () => ({ ...counts, open: sockets.size }),
    stop: () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    }
  }
}
