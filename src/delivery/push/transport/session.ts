// One HTTP/2 session of a push service. A session never opens more streams than the peer takes,
// reports of each failed push whether the peer can have processed it, and detects a silent
// connection.
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders
} from "node:http2"
import type { Socket } from "node:net"
import { type Load, streamsPerSession } from "./choice.ts"
import { codeOf, type Done, Exchange, type Limits, type Reply, type Request } from "./exchange.ts"

const { HTTP2_HEADER_STATUS, NGHTTP2_CANCEL, NGHTTP2_HTTP_1_1_REQUIRED, NGHTTP2_REFUSED_STREAM } =
  constants

/** An idle session is closed after this. */
const idleMillisMax = 60_000
/** The least time that a peer has for a PING, however short the time-out of a push is. */
const quietMillisMin = 1_000
/**
 * Checks between PING and the end of the session: a busy process may read the reply only after one
 * or two.
 */
const checksMin = 3
/** HEADERS (RFC 9113 section 6.2). */
const headersFrame = 1

/** Errors of requests for which no stream was opened, so the peer processed nothing. */
const unopened = new Set(["ERR_HTTP2_GOAWAY_SESSION", "ERR_HTTP2_INVALID_SESSION"])

export class PushSession implements Load {
  underWay = 0
  /** True when the peer asked for HTTP/1.1 (RFC 9113 section 7). */
  refusesHttp2 = false
  readonly #session: ClientHttp2Session
  readonly #socket: Socket
  readonly #limits: Limits
  readonly #changed: () => void
  #streamsMax: number | undefined
  #isRetired = false
  /** The last stream that the peer may have processed, from its GOAWAY. */
  #lastStreamId: number | undefined
  #aliveAt = performance.now()
  #pingedAt: number | undefined
  #checksSincePing = 0

  /** `changed` is called when the session may take more pushes than before, or none any more. */
  constructor(origin: string, socket: Socket, limits: Limits, changed: () => void) {
    this.#limits = limits
    this.#changed = changed
    this.#socket = socket
    this.#session = connect(origin, {
      createConnection: () => socket,
      settings: { enablePush: false }
    })
    this.#session
      .on("remoteSettings", ({ maxConcurrentStreams }) => {
        this.#noteAlive()
        this.#streamsMax = Math.min(streamsPerSession, maxConcurrentStreams ?? streamsPerSession)
        changed()
      })
      .on("goaway", (_code, lastStreamId) => {
        this.#lastStreamId = Math.min(lastStreamId, this.#lastStreamId ?? lastStreamId)
        this.retire()
      })
      // Each stream reports the error, too.
      .on("error", () => {})
      .on("close", () => {
        this.#isRetired = true
        changed()
      })
  }

  /** Streams that the peer takes at once; undefined until its SETTINGS arrive. */
  get streamsMax(): number | undefined {
    return this.#streamsMax
  }

  /** False: it takes no more pushes, or seems dead. */
  get isOpen(): boolean {
    return !this.#isRetired && this.#pingedAt === undefined
  }

  get isClosed(): boolean {
    return this.#session.destroyed
  }

  /** Takes no more pushes; the connection is closed after the last response. */
  retire(): void {
    if (this.#isRetired) return
    this.#isRetired = true
    if (!this.#session.closed && !this.#session.destroyed) this.#session.close()
    this.#changed()
  }

  destroy(): void {
    this.#session.destroy()
    // Node only ends the socket of a session that was closing; a silent peer never closes its side.
    this.#socket.destroy()
  }

  post(request: Request, done: Done<Reply>): void {
    const exchange = new Exchange(this.#limits.totalMillis, done)
    let stream: ClientHttp2Stream
    try {
      stream = this.#session.request(
        { ":method": "POST", ":path": request.path, ...request.headers },
        { endStream: request.body === undefined }
      )
    } catch (error) {
      const code = codeOf(error)
      if (unopened.has(code)) {
        this.retire()
        exchange.unprocessed()
      } else exchange.fail(code)
      return
    }
    if (this.underWay === 0) this.#aliveAt = performance.now()
    this.underWay += 1
    if (request.body !== undefined) stream.end(request.body)
    this.#read(stream, exchange)
  }

  /** Looks for silence. Called about once a second. */
  check(now: number): void {
    const quietMillis = Math.max(quietMillisMin, this.#limits.responseMillis / 4)
    if (this.#pingedAt !== undefined) {
      this.#checksSincePing += 1
      // No push sent over this session will get a response.
      if (now - this.#pingedAt > quietMillis && this.#checksSincePing >= checksMin) this.destroy()
    } else if (this.underWay === 0) {
      const isEnding = this.#isRetired && now - this.#aliveAt > quietMillis
      if (isEnding || this.isClosed) this.destroy()
      else if (now - this.#aliveAt > idleMillisMax) this.retire()
    } else if (now - this.#aliveAt > quietMillis && !this.#session.destroyed) {
      this.#pingedAt = now
      this.#checksSincePing = 0
      this.#session.ping((error) => {
        if (error === null) this.#noteAlive()
        this.#changed()
      })
    }
  }

  #noteAlive(): void {
    this.#aliveAt = performance.now()
    this.#pingedAt = undefined
  }

  #read(stream: ClientHttp2Stream, exchange: Exchange): void {
    const cancel = () => {
      stream.close(NGHTTP2_CANCEL)
      // Without this the stream of a dead connection would stay open.
      stream.destroy()
    }
    let error: string | undefined
    let wasSent = true
    const late = () => {
      exchange.fail("UND_ERR_HEADERS_TIMEOUT")
      cancel()
    }
    let timer = setTimeout(late, this.#limits.responseMillis)
    stream
      .on(
        "response",
        (headers: IncomingHttpHeaders & { readonly [HTTP2_HEADER_STATUS]?: number }) => {
          this.#noteAlive()
          clearTimeout(timer)
          timer = setTimeout(late, this.#limits.silenceMillis)
          const status = headers[HTTP2_HEADER_STATUS] ?? 0
          exchange.begin(status, headers)
          // Misdirected (RFC 9110 section 15.5.20): the next try must take another connection.
          if (status === 421) this.retire()
        }
      )
      .on("data", (chunk: Buffer) => {
        this.#aliveAt = performance.now()
        timer.refresh()
        if (!exchange.add(chunk)) cancel()
      })
      .on("frameError", (type: number) => {
        if (type === headersFrame) wasSent = false
      })
      .on("error", (cause) => {
        error = codeOf(cause)
      })
      .on("close", () => {
        clearTimeout(timer)
        this.underWay -= 1
        if (exchange.status !== 0) exchange.finish()
        else if (!wasSent || this.#isUnprocessed(stream)) exchange.unprocessed()
        else exchange.fail(error ?? "ECONNRESET")
        this.#changed()
      })
  }

  /** Whether the peer says that it did not process a stream (RFC 9113 section 8.7). */
  #isUnprocessed({ id, rstCode }: ClientHttp2Stream): boolean {
    if (rstCode === NGHTTP2_HTTP_1_1_REQUIRED) this.refusesHttp2 = true
    return (
      rstCode === NGHTTP2_REFUSED_STREAM ||
      rstCode === NGHTTP2_HTTP_1_1_REQUIRED ||
      (id !== undefined && this.#lastStreamId !== undefined && id > this.#lastStreamId)
    )
  }
}
