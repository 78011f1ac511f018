// Opens TCP connections to a host of which all addresses may be tried, or to one behind a proxy.
// Node.js ends an attempt after 250 ms when another address is left, so one lost SYN, or a slow
// IPv4 beside an IPv6 that leads nowhere, is a failure within a second. RFC 8305 section 5 begins
// another attempt then, and lets the first one go on.
import type { LookupAddress } from "node:dns"
import { connect as connectTcp, isIP, type Socket } from "node:net"
import type { Lookup } from "./address-filter.ts"

/** RFC 8305 section 8: the recommended delay between two attempts. */
const attemptDelayMillis = 250
/** Attempts at a time. Within 5 s, 20 more would begin. */
const attemptsMax = 8
/** Undici's, and as often probed as its own connections. */
const socketOptions = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 60_000 }

export interface SocketTarget {
  /** A name, or an address; IPv6 with or without brackets. */
  readonly hostname: string
  readonly port: number
  readonly lookup: Lookup
  /** When the attempts end, in milliseconds. */
  readonly millis: number
}

/** Called once. */
export type Opened = (error: Error | null, socket: Socket | null) => void

/** An error with a code, as those of sockets have one. */
export const codedError = (code: string, text: string): NodeJS.ErrnoException =>
  Object.assign(new Error(text), { code })

/** The error of a connection that took too long. */
export const timedOut = (): Error => codedError("UND_ERR_CONNECT_TIMEOUT", "no connection in time")

/** Alternates between the families, beginning with that of the first (RFC 8305 section 4). */
export const interleaved = (addresses: ReadonlyArray<LookupAddress>): Array<LookupAddress> => {
  const first = addresses.filter(({ family }) => family === addresses[0]?.family)
  const others = addresses.filter(({ family }) => family !== addresses[0]?.family)
  return addresses
    .flatMap((_, i) => [first[i], others[i]])
    .filter((each) => each !== undefined)
    .slice(0, attemptsMax)
}

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
