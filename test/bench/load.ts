// A closed loop of HTTP requests over kept-alive connections: each sends its next request when the
// last one is answered. Written on bare sockets, so that the generator takes as little as possible
// of the machine it measures.
import { connect } from "node:net"

export interface Order {
  readonly connections: number
  readonly millis: number
}

export interface Load extends Order {
  readonly port: number
  /** The whole of the next request, as text. */
  readonly next: () => string
  /** What every answer must have. */
  readonly status: number
  /** Ends the load before its time: so many requests in all. */
  readonly requests?: number
}

export interface Answered {
  readonly requests: number
  readonly seconds: number
  readonly p50Millis: number
  readonly p99Millis: number
}

/** An HTTP/1.1 request as it goes over the wire. */
export const wire = (method: string, path: string, user: string, body: unknown): string => {
  const text = body === undefined ? "" : JSON.stringify(body)
  const head = [
    `${method} ${path} HTTP/1.1`,
    "Host: localhost",
    "User-Agent: bench",
    `Authorization: Basic ${Buffer.from(`${user}:secret`).toString("base64")}`,
    ...(body === undefined ? [] : ["Content-Type: application/json"]),
    ...(method === "GET" ? [] : [`Content-Length: ${Buffer.byteLength(text)}`])
  ]
  return `${head.join("\r\n")}\r\n\r\n${text}`
}

/** What the latencies since `start` say; both in milliseconds. */
export const summaryOf = (latencies: ReadonlyArray<number>, start: number): Answered => {
  const sorted = latencies.toSorted((a, b) => a - b)
  const percentile = (share: number) =>
    sorted[Math.floor((sorted.length - 1) * share)] ?? Number.NaN
  return {
    requests: sorted.length,
    seconds: (performance.now() - start) / 1000,
    p50Millis: percentile(0.5),
    p99Millis: percentile(0.99)
  }
}

/** Whether a text is one whole answer; nothing here answers without a length. */
const isWhole = (text: string): boolean => {
  const head = text.indexOf("\r\n\r\n")
  if (head === -1) return false
  const length = Number(/^content-length: (\d+)/im.exec(text.slice(0, head))?.[1] ?? Number.NaN)
  return text.length >= head + 4 + length
}

const one = (order: Load, latencies: Array<number>, isLast: () => boolean): Promise<void> =>
  new Promise((resolve, reject) => {
    const { millis, next, port, status } = order
    const socket = connect(port, "127.0.0.1").setNoDelay(true).setEncoding("latin1")
    const end = performance.now() + millis
    let answer = ""
    let sentAt = 0
    const send = () => {
      answer = ""
      sentAt = performance.now()
      socket.write(next())
    }
    socket.on("connect", send).on("error", reject)
    socket.on("data", (part: string) => {
      answer += part
      if (!isWhole(answer)) return
      if (!answer.startsWith(`HTTP/1.1 ${status} `))
        return void socket.destroy(new Error(`not ${status}: ${answer}`))
      const now = performance.now()
      latencies.push(now - sentAt)
      if (now < end && !isLast()) send()
      else socket.end(resolve)
    })
    socket.on("close", () => reject(new Error("the connection was closed")))
  })

/** Rejects as soon as one answer is not as expected. */
export const load = async (order: Load): Promise<Answered> => {
  const latencies: Array<number> = []
  const start = performance.now()
  let left = (order.requests ?? Number.POSITIVE_INFINITY) - order.connections
  const isLast = () => --left < 0
  await Promise.all(Array.from({ length: order.connections }, () => one(order, latencies, isLast)))
  return summaryOf(latencies, start)
}
