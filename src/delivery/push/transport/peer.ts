// The connections to one push service: HTTP/2 where ALPN chooses it, HTTP/1.1 elsewhere. undici's
// pools open them as they are needed, close idle and silent ones, and send again what the push
// service says that it did not process (GOAWAY, REFUSED_STREAM).
import type { Socket } from "node:net"
import { createSecureContext } from "node:tls"
import buildConnector from "undici/lib/core/connect.js"
import Pool from "undici/lib/dispatcher/pool.js"
import type { Lookup } from "#basics/address-filter.ts"
import { connectorOver, type HttpProxy } from "#basics/outgoing.ts"
import {
  bodyWindowBytes,
  Connection,
  type ConnectionOptions,
  excessiveCode,
  fewAtATime
} from "./connection.ts"
import {
  codeOf,
  Exchange,
  type Limits,
  type PushResponse,
  type Request,
  withdrawnCode
} from "./exchange.ts"

interface PeerOptions {
  /** Offer HTTP/2. */
  readonly http2: boolean
  /** HTTP/1.1 connections at most. */
  readonly connectionsMax: number
  readonly limits: Limits
  readonly lookup: Lookup
  readonly proxy?: HttpProxy | undefined
}

/** Streams of one HTTP/2 connection: FCM ends a connection with more than 100. */
const streamsMax = 32
/** HTTP/2 connections: where a push service takes one stream on each, so many pushes at once. */
const sessionsMax = 16
const idleMillisMax = 60_000
/** After this, HTTP/2 is offered again to a push service that chose HTTP/1.1. */
const http1MillisMax = 10 * 60_000
/**
 * Between two counts of what connections receive. Over HTTP/2 a flood is at most one read, 64 KiB,
 * of each connection ahead.
 */
const checkMillis = 20
/** Between two looks for requests that are withdrawn while they wait for a connection. */
const withdrawnMillis = 200

export class Peer {
  readonly #origin: string
  readonly #options: PeerOptions
  readonly #penalty = new Penalty()
  /** Exchanges that no connection has taken. */
  readonly #waiting = new Set<Exchange>()
  /** Connections that have a socket. */
  readonly #open = new Set<Connection>()
  #checks: NodeJS.Timeout | undefined
  /** Looks for withdrawn requests while some wait. */
  #looks: NodeJS.Timeout | undefined
  #pool: Pool | undefined
  /** When HTTP/1.1 was chosen; undefined: HTTP/2 is offered. */
  #http1Since: number | undefined

  constructor(origin: string, options: PeerOptions) {
    this.#origin = origin
    this.#options = options
    // HTTP/2 without TLS has no negotiation.
    if (!options.http2 || !origin.startsWith("https:")) this.#http1Since = Number.POSITIVE_INFINITY
  }

  /** `done` is called once, and never later than `totalMillis` after the call. */
  post(request: Request, done: (response: PushResponse) => void): void {
    if (this.#penalty.isBlocked(performance.now())) {
      done({ error: excessiveCode })
      return
    }
    const exchange: Exchange = new Exchange(request, this.#options.limits.totalMillis, {
      sent: () => void this.#waiting.delete(exchange),
      misdirected: () => this.#retire(),
      wantsHttp1: () => this.#wantsHttp1(exchange),
      done: (response) => {
        this.#waiting.delete(exchange)
        done(response)
      }
    })
    this.#dispatch(exchange)
  }

  /** Ends once the pushes under way have their responses. */
  close(): void {
    this.#retire()
  }

  async destroy(): Promise<void> {
    this.#failWaiting("UND_ERR_DESTROYED")
    // Connections of former pools, too.
    await Promise.all([this.#pool, ...this.#open].map((each) => each?.destroy()))
  }

  #dispatch(exchange: Exchange): void {
    const { body, headers, path } = exchange.request
    this.#waiting.add(exchange)
    this.#current().dispatch({ method: "POST", path, headers, body: body ?? null }, exchange)
    if (this.#waiting.size > 0)
      this.#looks ??= setInterval(() => this.#failWithdrawn(), withdrawnMillis).unref()
  }

  /** Withdrawn requests need no connection: their places get free, and none of them is too late. */
  #failWithdrawn(): void {
    for (const exchange of this.#waiting) if (exchange.isWithdrawn) exchange.fail(withdrawnCode)
    if (this.#waiting.size > 0) return
    clearInterval(this.#looks)
    this.#looks = undefined
  }

  #current(): Pool {
    const since = this.#http1Since
    if (since !== undefined && performance.now() - since > http1MillisMax) {
      this.#http1Since = undefined
      this.#retire()
    }
    this.#pool ??= this.#newPool()
    return this.#pool
  }

  #newPool(): Pool {
    const { connectionsMax, limits, lookup, proxy } = this.#options
    const allowH2 = this.#http1Since === undefined
    const secure = buildConnector({
      allowH2,
      preferH2: true,
      timeout: limits.connectMillis,
      // A context for each connection takes a seventh of the CPU of a handshake.
      secureContext: createSecureContext()
    } as buildConnector.BuildOptions)
    const connect = connectorOver(secure, { lookup, millis: limits.connectMillis, proxy })
    return new Pool(this.#origin, {
      connections: allowH2 ? sessionsMax : connectionsMax,
      allowH2,
      connect: fewAtATime(connect as buildConnector.connector, (error) => {
        if (this.#open.size === 0) this.#failWaiting(codeOf(error))
      }),
      keepAliveTimeout: idleMillisMax,
      headersTimeout: limits.responseMillis,
      bodyTimeout: limits.silenceMillis,
      h2Options: {
        maxConcurrentStreams: streamsMax,
        pingInterval: 0,
        // Not in the types of undici 8.12.
        ...{ initialWindowSize: bodyWindowBytes }
      },
      factory: (origin, options) =>
        new Connection(origin, options as ConnectionOptions, {
          opened: (connection, socket) => this.#opened(connection, socket),
          closed: (connection) => this.#closed(connection),
          excessive: () => this.#excessive()
        })
    })
  }

  #opened(connection: Connection, socket: Socket): void {
    this.#open.add(connection)
    this.#checks ??= setInterval(() => {
      for (const each of this.#open) each.check()
    }, checkMillis).unref()
    const { alpnProtocol } = socket as { readonly alpnProtocol?: string | false }
    if (this.#http1Since === undefined && alpnProtocol !== "h2") this.#useHttp1()
  }

  #closed(connection: Connection): void {
    this.#open.delete(connection)
    if (this.#open.size > 0) return
    clearInterval(this.#checks)
    this.#checks = undefined
  }

  #failWaiting(error: string): void {
    for (const exchange of this.#waiting) exchange.fail(error)
  }

  #excessive(): void {
    if (!this.#penalty.note(performance.now())) return
    this.#failWaiting(excessiveCode)
    for (const connection of this.#open) connection.endAsExcessive()
    this.#retire()
  }

  #useHttp1(): void {
    this.#http1Since = performance.now()
    this.#retire()
  }

  /** The push service did not process the request, and wants it over HTTP/1.1. */
  #wantsHttp1(exchange: Exchange): void {
    if (this.#http1Since === undefined) this.#useHttp1()
    this.#dispatch(exchange)
  }

  /** The next push opens new connections. Those that are open end after their responses. */
  #retire(): void {
    void this.#pool?.close()
    this.#pool = undefined
  }
}

/** A block begins with this many connections that received too much within a minute. */
const excessesMax = 5
const excessesMillis = 60_000
/** The first block; each further one is twice as long. */
const firstMillis = 10_000
const maxMillis = 10 * 60_000
/** After a block the next excess blocks again, until there was none for so long. */
const forgetMillis = 60 * 60_000

/**
 * When a push service that sends too much is left alone, whatever it responds between. Callers give
 * the time, by the monotonic clock.
 */
export class Penalty {
  #excesses: ReadonlyArray<number> = []
  #lastAt = Number.NEGATIVE_INFINITY
  /** Length of the last block; 0: none. */
  #millis = 0
  #blockedUntil = Number.NEGATIVE_INFINITY

  isBlocked(now: number): boolean {
    return now < this.#blockedUntil
  }

  /** Notes that a connection received too much. Returns whether a block begins with it. */
  note(now: number): boolean {
    if (now - this.#lastAt > forgetMillis) this.#millis = 0
    this.#lastAt = now
    if (this.isBlocked(now)) return false
    this.#excesses = [...this.#excesses.filter((at) => now - at < excessesMillis), now]
    if (this.#millis === 0 && this.#excesses.length < excessesMax) return false
    this.#millis = Math.min(Math.max(firstMillis, 2 * this.#millis), maxMillis)
    this.#blockedUntil = now + this.#millis
    this.#excesses = []
    return true
  }
}
