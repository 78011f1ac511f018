// Raw TCP clients with a local address of their own: no HTTP client sends what these send.
import { connect, type Socket } from "node:net"

export interface Origin {
  readonly port: number
  /** Local address of the client: Linux answers on the whole of 127.0.0.0/8. */
  readonly from: string
}

export interface Client {
  readonly socket: Socket
  /** Latin-1 text of the first bytes received, at most `keptMax` of them. */
  readonly received: () => string
  /** Count of all bytes received. */
  readonly bytes: () => number
  readonly isClosed: () => boolean
  /** Resolves once a byte came or the connection ended, at the latest after the timeout. */
  readonly answered: (timeoutMillis: number) => Promise<void>
  /** Resolves once the server ended or reset the connection, at the latest after the timeout. */
  readonly closed: (timeoutMillis: number) => Promise<void>
}

const keptBytesMax = 65_536

/** Resolves when `events` emits one of the names, or after the timeout. */
const oneOf = (socket: Socket, names: ReadonlyArray<string>, timeoutMillis: number) =>
  new Promise<void>((resolve) => {
    const done = () => {
      clearTimeout(timer)
      for (const name of names) socket.off(name, done)
      resolve()
    }
    const timer = setTimeout(done, timeoutMillis)
    for (const name of names) socket.on(name, done)
  })

/** A client that is connected or refused. Errors of its socket are ignored: resets are normal. */
export const open = async ({ from, port }: Origin, keptMax = keptBytesMax): Promise<Client> => {
  const socket = connect({ host: "127.0.0.1", port, localAddress: from, allowHalfOpen: true })
  let kept = ""
  let bytes = 0
  let hasEnded = false
  socket.on("error", () => {})
  socket.on("end", () => {
    hasEnded = true
  })
  socket.on("data", (part: Buffer) => {
    bytes += part.length
    if (kept.length < keptMax) kept += part.toString("latin1")
  })
  const isClosed = () => hasEnded || socket.destroyed
  await oneOf(socket, ["connect", "close"], 10_000)
  return {
    socket,
    received: () => kept,
    bytes: () => bytes,
    isClosed,
    answered: async (timeoutMillis) => {
      if (bytes === 0 && !isClosed()) await oneOf(socket, ["data", "end", "close"], timeoutMillis)
    },
    closed: async (timeoutMillis) => {
      if (!isClosed()) await oneOf(socket, ["end", "close"], timeoutMillis)
    }
  }
}

/** Sends a TCP reset. A socket that the server already closed is left as it is. */
export const reset = ({ socket }: Client): void => {
  if (!socket.destroyed) socket.resetAndDestroy()
}

export const authorization = (user: string): string =>
  `Authorization: Basic ${Buffer.from(`${user}:secret`).toString("base64")}`

/** A request as it goes over the wire. Nothing is checked or added, but the lengths of bodies. */
export const request = (
  line: string,
  headers: ReadonlyArray<string> = [],
  body?: string | undefined
): string => {
  const length = body === undefined ? [] : [`Content-Length: ${Buffer.byteLength(body)}`]
  const head = [`${line} HTTP/1.1`, "Host: a", ...headers, ...length]
  return `${head.join("\r\n")}\r\n\r\n${body ?? ""}`
}

/** Resolves after so many milliseconds, or at once when `signal` is aborted. */
export const pause = (millis: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const done = () => {
      clearTimeout(timer)
      signal?.removeEventListener("abort", done)
      resolve()
    }
    const timer = setTimeout(done, millis)
    signal?.addEventListener("abort", done)
  })
