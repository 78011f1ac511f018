// The connections to one push service: HTTP/2 sessions where ALPN chooses it, HTTP/1.1 elsewhere.
import type { Socket } from "node:net"
import { buildConnector } from "undici"
import { type Choice, choose, roomOf, sessionsMax } from "./choice.ts"
import { codeOf, type Done, type Limits, type Reply, type Request } from "./exchange.ts"
import { type Http1, makeHttp1 } from "./http1.ts"
import { PushSession } from "./session.ts"

export interface PeerOptions {
  /** Offer HTTP/2. */
  readonly http2: boolean
  /** HTTP/1.1 connections at most. */
  readonly connectionsMax: number
  readonly limits: Limits
  readonly lookup: unknown
}

/** Tries, one after the other at once, of a request that the peer did not process. */
const triesMax = 5
/** After this, HTTP/2 is offered again to a peer that chose HTTP/1.1. */
const http1MillisMax = 10 * 60_000
/** Wait after a session could not be opened, before the next one is. */
const pauseMillis = 1_000

interface Waiting {
  readonly request: Request
  readonly done: Done
  readonly tries: number
  readonly timer: NodeJS.Timeout
}

export class Peer {
  readonly #origin: string
  readonly #options: PeerOptions
  readonly #http1: Http1
  readonly #connectHttp2: buildConnector.connector
  /** Undefined: unknown until the next connection. */
  #protocol: "http1" | "http2" | undefined
  #http1Since = 0
  /** The connection on which ALPN chose HTTP/1.1: the first that HTTP/1.1 uses. */
  #spare: Socket | undefined
  #sessions: Array<PushSession> = []
  #opening = 0
  #pausedUntil = 0
  readonly #waiting: Array<Waiting> = []
  #isClosed = false

  constructor(origin: string, options: PeerOptions) {
    const { connectionsMax, http2, limits, lookup } = options
    const connectorOf = (allowH2: boolean) =>
      buildConnector({
        allowH2,
        preferH2: true,
        timeout: limits.connectMillis,
        lookup
      } as buildConnector.BuildOptions)
    const connectHttp1 = connectorOf(false)
    this.#origin = origin
    this.#options = options
    this.#connectHttp2 = connectorOf(true)
    this.#http1 = makeHttp1(origin, connectionsMax, limits, (to, callback) => {
      const spare = this.#spare
      this.#spare = undefined
      if (spare === undefined || spare.destroyed) return connectHttp1(to, callback)
      queueMicrotask(() => callback(null, spare))
    })
    // HTTP/2 without TLS has no negotiation.
    if (!http2 || !origin.startsWith("https:")) this.#http1Since = Number.POSITIVE_INFINITY
    if (this.#http1Since > 0) this.#protocol = "http1"
  }

  /** Pushes that its connections carry at most. */
  get room(): number {
    const isHttp2 = this.#protocol === "http2"
    return isHttp2 ? roomOf(this.#sessions) : this.#options.connectionsMax
  }

  post(request: Request, done: Done): void {
    if (this.#speaksHttp1()) this.#http1.post(request, done)
    else {
      this.#wait(request, done, 1)
      this.#pump()
    }
  }

  /** Closes idle sessions and silent ones. Called about once a second. */
  check(now: number): void {
    for (const session of this.#sessions) session.check(now)
    // "close" may never come from a session that ended while its peer was silent.
    this.#sessions = this.#sessions.filter(({ isClosed }) => !isClosed)
    this.#pump()
  }

  /** Ends once the pushes under way have their responses. */
  close(): void {
    this.#isClosed = true
    this.#spare?.destroy()
    for (const session of this.#sessions) session.retire()
    void this.#http1.close()
  }

  async destroy(): Promise<void> {
    this.#isClosed = true
    this.#spare?.destroy()
    this.#failWaiting("UND_ERR_DESTROYED")
    for (const session of this.#sessions) session.destroy()
    await this.#http1.destroy()
  }

  #speaksHttp1(): boolean {
    if (this.#protocol !== "http1") return false
    if (performance.now() - this.#http1Since < http1MillisMax) return true
    this.#protocol = undefined
    return false
  }

  #useHttp1(): void {
    this.#protocol = "http1"
    this.#http1Since = Math.max(this.#http1Since, performance.now())
    for (const session of this.#sessions) session.retire()
    for (const { done, request, timer } of this.#waiting.splice(0)) {
      clearTimeout(timer)
      this.#http1.post(request, done)
    }
    // No push took the connection.
    this.#spare?.destroy()
    this.#spare = undefined
  }

  #wait(request: Request, done: Done, tries: number): void {
    const { responseMillis } = this.#options.limits
    const timer = setTimeout(() => {
      this.#waiting.splice(this.#waiting.indexOf(waiting), 1)
      done({ error: "UND_ERR_CONNECT_TIMEOUT" })
    }, responseMillis)
    const waiting: Waiting = { request, done, tries, timer }
    this.#waiting.push(waiting)
  }

  /** Hands waiting pushes to sessions, and opens sessions for them. */
  #pump(): void {
    while (this.#waiting.length > 0) {
      const { opens, use } = this.#choice()
      if (opens) this.#open()
      if (use === undefined) return
      this.#send(this.#sessions[use]!, this.#waiting.shift()!)
    }
  }

  #choice(): Choice {
    // The first connection negotiates the protocol.
    const max = this.#protocol === undefined ? 1 : sessionsMax
    const choice = choose(this.#sessions, this.#opening, this.#waiting.length, max)
    const isPaused = performance.now() < this.#pausedUntil
    return isPaused && this.#sessions.length > 0 ? { ...choice, opens: false } : choice
  }

  #send(session: PushSession, { done, request, timer, tries }: Waiting): void {
    clearTimeout(timer)
    session.post(request, (reply: Reply) => {
      if (reply !== "unprocessed") return done(reply)
      if (session.refusesHttp2 && this.#protocol !== "http1") this.#useHttp1()
      if (this.#protocol === "http1") return this.#http1.post(request, done)
      if (tries >= triesMax || this.#isClosed) return done({ error: "ERR_HTTP2_STREAM_ERROR" })
      this.#wait(request, done, tries + 1)
      // Not at once: a GOAWAY of the session may follow.
      setImmediate(() => this.#pump())
    })
  }

  #open(): void {
    const { host, hostname, port, protocol } = new URL(this.#origin)
    this.#opening += 1
    this.#connectHttp2({ host, hostname, port, protocol }, (error, socket) => {
      this.#opening -= 1
      if (error !== null) this.#failed(codeOf(error))
      else if (this.#isClosed) socket?.destroy()
      else if ((socket as unknown as { alpnProtocol?: string }).alpnProtocol === "h2")
        this.#begin(socket!)
      else {
        this.#spare?.destroy()
        this.#spare = socket!
        this.#useHttp1()
      }
    })
  }

  #begin(socket: Socket): void {
    this.#protocol = "http2"
    const session = new PushSession(this.#origin, socket, this.#options.limits, () => {
      if (session.isClosed) this.#sessions = this.#sessions.filter((each) => each !== session)
      this.#pump()
    })
    this.#sessions.push(session)
    this.#pump()
  }

  /** A connection failed. Waiting pushes fail with it, unless another session can take them. */
  #failed(error: string): void {
    this.#pausedUntil = performance.now() + pauseMillis
    if (this.#opening > 0 || this.#sessions.some(({ isOpen }) => isOpen)) return
    this.#failWaiting(error)
  }

  #failWaiting(error: string): void {
    for (const { done, timer } of this.#waiting.splice(0)) {
      clearTimeout(timer)
      done({ error })
    }
  }
}
