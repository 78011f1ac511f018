// A proxy for outgoing TLS, by CONNECT (RFC 9110 section 9.3.6), as company networks have it. The
// proxy looks up the host, so nobody here sees the address that is called: the proxy itself must
// keep its clients from private addresses.
import type { Socket } from "node:net"
import { codedError, type Opened } from "./open-socket.ts"

export interface HttpProxy {
  readonly hostname: string
  readonly port: number
  /** A credential: never log it. */
  readonly authorization: string | undefined
  /** Whether NO_PROXY excludes a host. */
  readonly excludes: (hostname: string, port: number) => boolean
}

type Environment = Readonly<Record<string, string | undefined>>

const textOf = (env: Environment, name: string): string =>
  (env[name.toLowerCase()] || env[name] || "").trim()

const urlOf = (text: string): URL | null =>
  URL.parse(text.includes("://") ? text : `http://${text}`)

/** Whether each percent sign of a part of a URL begins an escape of UTF-8. */
export const isEscaped = (text: string): boolean => {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

const isUsable = (url: URL | null): url is URL =>
  url !== null &&
  url.protocol === "http:" &&
  url.pathname === "/" &&
  url.search === "" &&
  isEscaped(url.username + url.password)

/** Why HTTPS_PROXY cannot be used; undefined: it can, or is not set. Never quotes its login. */
export const proxyFault = (env: Environment): string | undefined => {
  const text = textOf(env, "HTTPS_PROXY")
  return text === "" || isUsable(urlOf(text))
    ? undefined
    : "HTTPS_PROXY: Expected http://host:port, with user:password@ before the host where needed " +
        "(the proxy is spoken to without TLS, and passes TLS on); NO_PROXY=* uses none"
}

/** The entries of NO_PROXY: `*`, or hosts that stand for themselves and all below them. */
const exclusionOf = (text: string): HttpProxy["excludes"] => {
  const entries = text
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((entry) => entry !== "")
    .map((entry) => {
      const [, host = entry, port] = /^(.*?)(?::(\d+))?$/.exec(entry) ?? []
      return {
        host: host.replace(/^\*?\./, ""),
        port: port === undefined ? undefined : Number(port)
      }
    })
  return (hostname, at) =>
    entries.some(
      ({ host, port }) =>
        (port === undefined || port === at) &&
        (host === "*" || hostname === host || hostname.endsWith(`.${host}`))
    )
}

/** The proxy of an environment: HTTPS_PROXY and NO_PROXY, in capitals or not. */
export const proxyOf = (env: Environment): HttpProxy | undefined => {
  const url = urlOf(textOf(env, "HTTPS_PROXY"))
  if (textOf(env, "HTTPS_PROXY") === "" || !isUsable(url)) return undefined
  const login = [url.username, url.password].map(decodeURIComponent).join(":")
  return {
    hostname: url.hostname.replace(/^\[|\]$/g, ""),
    port: Number(url.port || 80),
    authorization:
      url.username === "" ? undefined : `Basic ${Buffer.from(login).toString("base64")}`,
    excludes: exclusionOf(textOf(env, "NO_PROXY"))
  }
}

/** The code of the error where the proxy cannot be reached, or opens no tunnel. */
export const proxyCode = "BELLCAST_PROXY"

/** A proxy's head has a few lines. */
const headBytesMax = 16_384

/** Asks the proxy at the other end of a socket for a tunnel to `authority`, `host:port`. */
export const openTunnel = (
  socket: Socket,
  authority: string,
  { authorization }: HttpProxy,
  opened: Opened
): void => {
  let head = ""
  const end = (error: Error | null) => {
    socket.off("data", read).off("error", end).off("close", closed).pause()
    if (error !== null) socket.destroy()
    opened(error, error === null ? socket : null)
  }
  const refuse = (text: string) => end(codedError(proxyCode, text))
  const closed = () => refuse("the proxy closed the connection")
  const read = (chunk: Buffer) => {
    head += chunk.toString("latin1")
    const length = head.indexOf("\r\n\r\n")
    if (length < 0 && head.length <= headBytesMax) return
    const [, status = ""] = /^HTTP\/1\.[01] (\d{3})[ \r]/.exec(head) ?? []
    // The server waits for the client: nothing can come through the tunnel yet.
    if (length + 4 === head.length && status.startsWith("2")) end(null)
    else refuse(`the proxy opened no tunnel (status ${status || "none"})`)
  }
  socket.on("data", read).on("error", end).on("close", closed)
  socket.write(
    `CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n` +
      (authorization === undefined ? "" : `Proxy-Authorization: ${authorization}\r\n`) +
      "\r\n"
  )
}
