// One connection to a push service, and how much it may receive. Some bytes and frames never reach
// a handler (chunk extensions, PING, GOAWAY, empty frames), so the bytes of the socket are counted.
// Bytes of HTTP/1.1 are counted as they are parsed: asking 100 sockets every 20 ms took 4 % of the
// CPU of pushes.
import type { Socket } from "node:net"
import type { buildConnector, Dispatcher } from "undici"
import Client from "undici/lib/dispatcher/client.js"

/** The code with which the exchanges of a connection fail that received too much. */
export const excessiveCode = "BELLCAST_EXCESSIVE"

/**
 * Bytes beside those of bodies that a connection may receive for nothing. HTTP/1.1 has one exchange
 * at a time.
 */
const spareBytes = { h2: 65_536, http1: 16_384 }
/**
 * Bytes that each exchange adds, with its request and with its end. The head of a response has
 * about 1 KiB.
 */
const openBytes = 2_048
const endedBytes = 6_144
/** HTTP/2: what a push service may send of a body before we have read it. */
export const bodyWindowBytes = 16_384
/**
 * HTTP/1.1: a head may grow in so many checks, half a second in all. A byte in 20 ms on each of 512
 * connections took 80 % of a core.
 */
const headChecksMax = 25
/** HTTP/1.1: bytes that are parsed at once. What follows the bound is never parsed. */
const parsedBytes = 8_192
/** TLS session tickets, which are no bytes of the connection. Servers send one to four. */
const ticketsMax = 16

export type ConnectionOptions = Client.Options & { readonly connect: buildConnector.connector }

interface ConnectionEvents {
  readonly opened: (connection: Connection, socket: Socket) => void
  /** The connection has no socket any more. */
  readonly closed: (connection: Connection) => void
  /** The connection received too much and has ended. */
  readonly excessive: () => void
}

/** A handler that is told which connection carries its request. */
export interface Carried extends Dispatcher.DispatchHandler {
  connection: Connection | undefined
}

export class Connection extends Client {
  /** True once it received too much. */
  isExcessive = false
  readonly #events: ConnectionEvents
  /**
   * Bytes counted, by socket; undefined: of HTTP/1.1. After GOAWAY the former socket stays until
   * its streams end.
   */
  readonly #sockets = new Map<Socket, number | undefined>()
  /** HTTP/1.1: bytes given to the parser since the last count. */
  #parsed = 0
  #spare = spareBytes.h2
  #credit = spareBytes.h2
  /** Bytes that may still come of bodies that were cut off. */
  #late = 0
  #underWay = 0
  /** Checks that found bytes since the last beginning or end of an exchange, or part of a body. */
  #headChecks = 0
  /** Bytes were counted since the last check. */
  #hasGrown = false
  #isHttp2 = false

  constructor(origin: string | URL, options: ConnectionOptions, events: ConnectionEvents) {
    const connect: buildConnector.connector = (to, callback) =>
      options.connect(to, (...result) => {
        if (result[0] === null) this.#watch(result[1])
        callback(...result)
      })
    super(origin, { ...options, connect })
    this.#events = events
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler) {
    ;(handler as Carried).connection = this
    this.#underWay += 1
    this.#headChecks = 0
    this.#credit += openBytes
    return super.dispatch(options, handler)
  }

  get isHttp2(): boolean {
    return this.#isHttp2
  }

  /** An exchange that was dispatched has ended. */
  ended(): void {
    this.#underWay -= 1
    this.#headChecks = 0
    this.#credit += endedBytes
  }

  /** Part of a body was received: exchanges have a bound for these of their own. */
  receivedBody(bytes: number): void {
    this.#headChecks = 0
    this.#credit += bytes
  }

  /**
   * Ends a body that is too long: over HTTP/2 with its stream alone, as a subscription may name any
   * page of a push service, and pushes to others share the connection.
   */
  cutOff(controller: Dispatcher.DispatchController): void {
    if (this.#isHttp2) {
      this.#late += bodyWindowBytes
      controller.abort(new Error("the body is too long"))
    } else this.endAsExcessive()
  }

  /** Ends it, and with it all exchanges on it. */
  endAsExcessive(): void {
    if (this.isExcessive) return
    this.isExcessive = true
    const error = Object.assign(new Error("received too much"), { code: excessiveCode })
    for (const socket of this.#sockets.keys()) socket.destroy(error)
    this.#events.excessive()
  }

  /** Ends the connection if it has received too much, or a head too slowly. Call it often. */
  check(): void {
    this.#count()
    if (this.#hasGrown) this.#headChecks += 1
    this.#hasGrown = false
    if (this.#headChecks > headChecksMax) this.endAsExcessive()
  }

  /** Counts what was received and is not waiting to be parsed. */
  #count(): void {
    for (const [socket, counted] of this.#sockets) {
      if (counted === undefined) continue
      const received = socket.bytesRead - socket.readableLength
      this.#credit -= received - counted
      this.#sockets.set(socket, received)
    }
    if (this.#parsed > 0) this.#hasGrown = true
    this.#credit -= this.#parsed
    this.#parsed = 0
    const late = Math.min(this.#late, Math.max(0, -this.#credit))
    this.#late -= late
    this.#credit += late
    if (this.#credit < 0) this.endAsExcessive()
    this.#credit = Math.min(this.#credit, this.#spare + openBytes * this.#underWay)
  }

  /**
   * Counts before each part that undici's parser takes. No handler here pauses it: it would give
   * bytes back, which would count twice.
   */
  #parseInParts(socket: Socket): void {
    const read = socket.read.bind(socket)
    socket.read = (size) => {
      // Node.js itself reads 0 bytes, to fill the buffer.
      if (size === 0) return read(0)
      this.#count()
      if (this.isExcessive) return null
      const part: Buffer | null = read(Math.min(socket.readableLength, parsedBytes) || undefined)
      this.#parsed += part?.length ?? 0
      return part
    }
  }

  #watch(socket: Socket): void {
    let tickets = 0
    this.isExcessive = false
    const { alpnProtocol } = socket as { readonly alpnProtocol?: string | false }
    this.#isHttp2 = alpnProtocol === "h2"
    this.#headChecks = 0
    this.#spare = this.#isHttp2 ? spareBytes.h2 : spareBytes.http1
    this.#credit = this.#spare + openBytes * this.#underWay
    this.#parsed = 0
    this.#sockets.set(socket, this.#isHttp2 ? socket.bytesRead : undefined)
    if (!this.#isHttp2) this.#parseInParts(socket)
    socket
      .on("session", () => {
        tickets += 1
        if (tickets > ticketsMax) this.endAsExcessive()
      })
      .once("close", () => {
        this.#sockets.delete(socket)
        if (this.#sockets.size === 0) this.#events.closed(this)
      })
    this.#events.opened(this, socket)
  }
}

type Connector = buildConnector.connector
type Arguments = Parameters<Connector>

/**
 * At 60 ms, 8 handshakes at a time are about 66 a second. HTTP/2 needs 16 connections. With 32, 512
 * of HTTP/1.1 at once delayed the pushes of others by 260 ms (p99).
 */
const openingMax = 8
/** So many failures in a row say that the push service cannot be reached. */
const failuresMax = 32

/**
 * Opens connections to one push service, few at the same time: a TLS handshake takes about 1 ms of
 * the CPU, and all of those under way take it at once. `connect`: what opens one. `unreachable` is
 * called when the only one under way fails, or 32 in a row; those that wait for their turn fail
 * then.
 */
export const fewAtATime = (
  connect: Connector,
  unreachable: (error: Error) => void = () => {}
): Connector => {
  let opening = 0
  let failedInRow = 0
  const waiting: Array<Arguments> = []
  const failed = (error: Error) => {
    failedInRow += 1
    const isLast = opening === 0 && waiting.length === 0
    if (!isLast && failedInRow < failuresMax) return
    for (const [, callback] of waiting.splice(0)) callback(error, null)
    unreachable(error)
  }
  const open = (...[to, callback]: Arguments): void => {
    opening += 1
    connect(to, (...result) => {
      opening -= 1
      callback(...result)
      if (result[0] === null) failedInRow = 0
      else failed(result[0])
      const next = waiting.shift()
      if (next !== undefined) open(...next)
    })
  }
  return (...each) => {
    if (opening < openingMax) open(...each)
    else waiting.push(each)
  }
}
