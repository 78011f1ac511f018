// How undici reaches hosts that others name: over sockets of ours, straight or through the proxy of
// the environment. undici makes TLS of them.
//
// Sockets of ours, because Node.js ends an attempt after 250 ms when another address is left: one
// lost SYN, or a slow IPv4 beside an IPv6 that leads nowhere, is a failure within a second. RFC
// 8305 section 5 begins another attempt then, and lets the first one go on.
//
// The proxy is for TLS, by CONNECT (RFC 9110 section 9.3.6), as company networks have it. It looks
// up the host, so nobody here sees the address that is called: the proxy itself must keep its
// clients from private addresses.
import type { LookupAddress } from "node:dns"
import { connect as connectTcp, isIP, type Socket } from "node:net"
import { anyLookup, type Lookup } from "./address-filter.ts"

/** The input of undici's connectors. An empty port is the default one. */
interface ConnectTo {
  readonly hostname: string
  readonly protocol: string
  readonly port: string
}

interface Outgoing extends Pick<SocketTarget, "lookup" | "millis"> {
  /** Only TLS goes through it: http is for this machine. */
  readonly proxy: HttpProxy | undefined
}

/**
 * A connector for undici. `secure` is undici's own, which makes TLS of a socket. TCP, the tunnel
 * and TLS together may take `millis`.
 */
export const connectorOver =
  <To extends ConnectTo>(
    secure: (to: To & { readonly httpSocket: Socket }, opened: Opened) => unknown,
    { lookup, millis, proxy }: Outgoing
  ): ((to: To, opened: Opened) => void) =>
  (to, opened) => {
    const { hostname } = to
    const isSecure = to.protocol === "https:"
    const begunAt = performance.now()
    const target = { hostname, port: Number(to.port || (isSecure ? 443 : 80)), lookup, millis }
    const made: Opened = (error, socket) => {
      if (socket === null || !isSecure) return opened(error, socket)
      const deadline = setTimeout(() => secured.destroy(timedOut()), leftOf(millis, begunAt))
      const secured = secure({ ...to, httpSocket: socket }, (failure, result) => {
        clearTimeout(deadline)
        // TLS that fails leaves the socket below it open.
        if (failure !== null) socket.destroy()
        opened(failure, result)
      }) as Socket
    }
    if (proxy === undefined || !isSecure || proxy.excludes(hostname, target.port))
      openSocket(target, made)
    else openThrough(proxy, target, made)
  }

/** A process that stood still may be late already; Node prints a warning of a negative delay. */
const leftOf = (millis: number, begunAt: number): number =>
  Math.max(0, millis - (performance.now() - begunAt))

interface SocketTarget {
  /** A name, or an address; IPv6 with or without brackets. */
  readonly hostname: string
  readonly port: number
  readonly lookup: Lookup
  /** When the attempts end, in milliseconds. */
  readonly millis: number
}

/** Called once. */
type Opened = (error: Error | null, socket: Socket | null) => void

/**
 * Opens a connection. `lookup` is asked about names only. Fails with the error of the lookup, with
 * that of the last attempt, or with UND_ERR_CONNECT_TIMEOUT.
 */
export const openSocket = (target: SocketTarget, opened: Opened): void => {
  const race = new Race(target, opened)
  const address = target.hostname.replace(/^\[|\]$/g, "")
  const family = isIP(address)
  if (family !== 0) race.begin([{ address, family }])
  else
    target.lookup(target.hostname, { all: true }, (error, addresses) => {
      if (error !== null) race.end(error, null)
      else race.begin(addresses as ReadonlyArray<LookupAddress>)
    })
}

/** RFC 8305 section 8: the recommended delay between two attempts. */
const attemptDelayMillis = 250

/** Attempts at a time. Within 5 s, 20 more would begin. */
const attemptsMax = 8

/** Undici's, and as often probed as its own connections. */
const socketOptions = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 60_000 }

/** Tries addresses one after the other, each beside those before it, until one connects. */
class Race {
  readonly #port: number
  readonly #opened: Opened
  readonly #sockets = new Set<Socket>()
  readonly #deadline: NodeJS.Timeout
  #left: Array<LookupAddress> = []
  #next: NodeJS.Timeout | undefined
  #isOver = false

  constructor({ millis, port }: SocketTarget, opened: Opened) {
    this.#port = port
    this.#opened = opened
    this.#deadline = setTimeout(() => this.end(timedOut(), null), millis)
  }

  begin(addresses: ReadonlyArray<LookupAddress>): void {
    this.#left = interleaved(addresses)
    if (!this.#isOver) this.#attempt()
  }

  end(error: Error | null, winner: Socket | null): void {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#deadline)
    clearTimeout(this.#next)
    for (const each of this.#sockets) if (each !== winner) each.destroy()
    this.#opened(error, winner)
  }

  #attempt(): void {
    clearTimeout(this.#next)
    const address = this.#left.shift()
    if (address === undefined) return
    const socket = connectTcp({ host: address.address, port: this.#port, ...socketOptions })
    this.#sockets.add(socket)
    socket
      .once("connect", () => this.end(null, socket))
      .once("error", (error) => this.#failed(socket, error))
    if (this.#left.length > 0) this.#next = setTimeout(() => this.#attempt(), attemptDelayMillis)
  }

  #failed(socket: Socket, error: Error): void {
    this.#sockets.delete(socket)
    if (this.#isOver) return
    if (this.#left.length > 0) this.#attempt()
    else if (this.#sockets.size === 0) this.end(error, null)
  }
}

/** Alternates between the families, beginning with that of the first (RFC 8305 section 4). */
export const interleaved = (addresses: ReadonlyArray<LookupAddress>): Array<LookupAddress> => {
  const first = addresses.filter(({ family }) => family === addresses[0]?.family)
  const others = addresses.filter(({ family }) => family !== addresses[0]?.family)
  return addresses
    .flatMap((_, i) => [first[i], others[i]])
    .filter((each) => each !== undefined)
    .slice(0, attemptsMax)
}

/** Opens a connection through a proxy, which looks up the name of the target. */
const openThrough = (
  proxy: HttpProxy,
  { hostname, millis, port }: SocketTarget,
  opened: Opened
) => {
  const begunAt = performance.now()
  const { hostname: host, port: proxyPort } = proxy
  const to = { hostname: host, port: proxyPort, lookup: anyLookup(), millis }
  openSocket(to, (error, socket) => {
    if (socket === null) return opened(codedError(proxyCode, `the proxy: ${error?.message}`), null)
    const deadline = setTimeout(() => socket.destroy(timedOut()), leftOf(millis, begunAt))
    openTunnel(socket, `${hostname}:${port}`, proxy, (...result) => {
      clearTimeout(deadline)
      opened(...result)
    })
  })
}

/** The code of the error where the proxy cannot be reached, or opens no tunnel. */
const proxyCode = "BELLCAST_PROXY"

/** A proxy's head has a few lines. */
const headBytesMax = 16_384

/** Asks the proxy at the other end of a socket for a tunnel to `authority`, `host:port`. */
const openTunnel = (
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

/** An error with a code, as those of sockets have one. */
const codedError = (code: string, text: string): NodeJS.ErrnoException =>
  Object.assign(new Error(text), { code })

/** The error of a connection that took too long. */
const timedOut = (): Error => codedError("UND_ERR_CONNECT_TIMEOUT", "no connection in time")

export interface HttpProxy {
  readonly hostname: string
  readonly port: number
  /** A credential: never log it. */
  readonly authorization: string | undefined
  /** Whether NO_PROXY excludes a host. */
  readonly excludes: (hostname: string, port: number) => boolean
}

type Environment = Readonly<Record<string, string | undefined>>

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

/** Why HTTPS_PROXY cannot be used; undefined: it can, or is not set. Never quotes its login. */
export const proxyFault = (env: Environment): string | undefined => {
  const text = textOf(env, "HTTPS_PROXY")
  return text === "" || isUsable(urlOf(text))
    ? undefined
    : "HTTPS_PROXY: Expected http://host:port, with user:password@ before the host where needed " +
        "(the proxy is spoken to without TLS, and passes TLS on); NO_PROXY=* uses none"
}

const isUsable = (url: URL | null): url is URL =>
  url !== null &&
  url.protocol === "http:" &&
  url.pathname === "/" &&
  url.search === "" &&
  isEscaped(url.username + url.password)

/** Whether each percent sign of a part of a URL begins an escape of UTF-8. */
export const isEscaped = (text: string): boolean => {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

const textOf = (env: Environment, name: string): string =>
  (env[name.toLowerCase()] || env[name] || "").trim()
const urlOf = (text: string): URL | null =>
  URL.parse(text.includes("://") ? text : `http://${text}`)

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
