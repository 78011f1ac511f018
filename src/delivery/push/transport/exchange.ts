// One request and its response, with bounds on time, size and parts. The handler of undici's
// dispatcher, over HTTP/1.1 and HTTP/2.

import { subscribe } from "node:diagnostics_channel"
import { type ClientHttp2Stream, constants } from "node:http2"
import type { Dispatcher } from "undici"
import { type Carried, type Connection, excessiveCode } from "./connection.ts"

export interface Request {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array | undefined
  /** Asked when a connection takes the request, which may have waited for it for seconds. */
  readonly isWithdrawn?: () => boolean
  /** A request that waited longer for an HTTP/2 connection is withdrawn, too. */
  readonly waitMillisMax?: number
}

export interface Answer {
  readonly status: number
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  /** The first bytes of the body, read for errors only. */
  readonly body: string
}

/** A response, and how long its request waited for a connection. */
export interface Received extends Answer {
  readonly waitedMillis: number
}

/** The code of the error that prevented a response. */
export interface NoAnswer {
  readonly error: string
}

/** The end of a request to a push service; ../post.ts says what it means. */
export type PushResponse = Received | NoAnswer

/** The error of a request that was withdrawn before a connection took it, and so not sent. */
export const withdrawnCode = "BELLCAST_WITHDRAWN"

/** Milliseconds. */
export interface Limits {
  readonly connectMillis: number
  /** From the request to the status of the response. */
  readonly responseMillis: number
  /** Between two parts of the body of the response. */
  readonly silenceMillis: number
  /** From the request, which may wait for a connection first, to the end of the response. */
  readonly totalMillis: number
}

export const limitsOf = (pushTimeoutMillis: number): Limits => {
  const connectMillis = 5_000
  return {
    connectMillis,
    responseMillis: pushTimeoutMillis,
    silenceMillis: pushTimeoutMillis / 2,
    totalMillis: connectMillis + pushTimeoutMillis
  }
}

/**
 * Bounds on one attempt: most make one request, some several. After a pause, and after the last
 * outcome of a worker, other workers wait until an attempt must be over.
 */
export const attemptLimitsOf = (pushTimeoutMillis: number) => {
  /** From the start of the first request of an attempt to that of its last one. */
  const triesMillis = pushTimeoutMillis / 2
  return { triesMillis, attemptMillis: triesMillis + limitsOf(pushTimeoutMillis).totalMillis }
}

const { NGHTTP2_HTTP_1_1_REQUIRED } = constants

/** Characters of an error body that post.ts searches for a few words. */
const bodyCharsMax = 2_048
/** A longer body is cut off: over HTTP/1.1 with its connection, over HTTP/2 with its stream. */
const bodyBytesMax = 65_536
/** Parts of a body, each of which costs a call: 64 KiB in segments of 1,400 bytes are 47. */
const partsMax = 64
/** Interim responses (1xx). Push services send none. */
const interimMax = 8

/** Errors of what no push service sends: malformed frames, endless headers or trailers. */
const violations = new Set([
  "ERR_HTTP2_ERROR",
  "ERR_HTTP2_TOO_MANY_INVALID_FRAMES",
  "UND_ERR_HEADERS_OVERFLOW"
])

/** The events of an exchange that its peer handles. */
export interface Events {
  /** The connection has taken the request. */
  readonly sent: () => void
  /** Misdirected (RFC 9110 section 15.5.20): the next try must take another connection. */
  readonly misdirected: () => void
  /** The push service did not process the request, and wants HTTP/1.1 (RFC 9113 section 7). */
  readonly wantsHttp1: () => void
  /** Called once. */
  readonly done: (response: PushResponse) => void
}

type Controller = Dispatcher.DispatchController

/** Calls `done` once. The time starts with the constructor. */
export class Exchange implements Carried {
  readonly request: Request
  /** The connection that has it now. */
  connection: Connection | undefined
  readonly #events: Events
  readonly #timer: NodeJS.Timeout
  readonly #begunAt = performance.now()
  #waitedMillis = 0
  #controller: Controller | undefined
  #status = 0
  #headers: Record<string, string> = {}
  #text = ""
  #bytes = 0
  #parts = 0
  #interims = 0
  #isDone = false

  constructor(request: Request, totalMillis: number, events: Events) {
    this.request = request
    this.#events = events
    this.#timer = setTimeout(() => {
      this.fail("UND_ERR_HEADERS_TIMEOUT")
      this.#controller?.abort(new Error("too late"))
    }, totalMillis)
  }

  get isWithdrawn(): boolean {
    return this.request.isWithdrawn?.() === true
  }

  onRequestStart(controller: Controller): void {
    const { waitMillisMax = Number.POSITIVE_INFINITY } = this.request
    this.#controller = controller
    this.#waitedMillis = performance.now() - this.#begunAt
    // An HTTP/1.1 connection would end with the request, and the next one may take as long.
    const isLate = this.#waitedMillis > waitMillisMax && this.connection?.isHttp2 === true
    if (this.isWithdrawn || isLate) this.fail(withdrawnCode)
    // An exchange that failed, now or while it waited, must not be sent any more.
    if (this.#isDone) controller.abort(new Error("failed before"))
    else this.#events.sent()
  }

  onResponseStart(
    _controller: Controller,
    status: number,
    headers: Readonly<Record<string, unknown>>
  ): void {
    if (status < 200) {
      this.#interims += 1
      if (this.#interims > interimMax) this.connection?.endAsExcessive()
      return
    }
    this.#status = status
    // A header that came twice becomes a list.
    this.#headers = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, String(value)])
    )
    // The status of a success is enough. Its body is read and dropped.
    if (status >= 200 && status < 300) this.#finish()
    if (status === 421 && this.connection?.closed === false) this.#events.misdirected()
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    this.#parts += 1
    this.#bytes += chunk.length
    this.connection?.receivedBody(chunk.length)
    if (this.#text.length < bodyCharsMax)
      this.#text += chunk.toString("latin1").slice(0, bodyCharsMax - this.#text.length)
    if (this.#parts > partsMax || this.#bytes > bodyBytesMax) this.connection?.cutOff(controller)
  }

  onResponseEnd(): void {
    this.#finish()
    clearTimeout(this.#timer)
    this.#leave()
  }

  onResponseError(_controller: Controller | null, error: Error): void {
    const { connection } = this
    if (violations.has(codeOf(error))) connection?.endAsExcessive()
    const { http2ErrorCode } = error as { readonly http2ErrorCode?: number }
    this.#leave()
    const isOver = this.#isDone || this.#status !== 0
    if (!isOver && http2ErrorCode === NGHTTP2_HTTP_1_1_REQUIRED) this.#events.wantsHttp1()
    else {
      this.fail(connection?.isExcessive === true ? excessiveCode : codeOf(error))
      clearTimeout(this.#timer)
    }
  }

  /** A status that came before the error stays valid. */
  fail(error: string): void {
    if (this.#status !== 0) this.#finish()
    else this.#settle({ error })
  }

  #finish(): void {
    this.#settle({
      ...{ status: this.#status, headers: this.#headers, body: this.#text },
      waitedMillis: Math.round(this.#waitedMillis)
    })
  }

  #settle(response: PushResponse): void {
    if (this.#isDone) return
    this.#isDone = true
    this.#events.done(response)
  }

  #leave(): void {
    this.connection?.ended()
    this.connection = undefined
  }
}

/** The code of an error, fit for post.ts. */
export const codeOf = (error: unknown): string =>
  (error as NodeJS.ErrnoException | null)?.code ?? "UNKNOWN"

// Cancels the HTTP/2 streams of pushes that are given up. undici calls `stream.close()` and then
// destroys the stream. Without a code Node.js holds RST_STREAM back until the body is sent, and a
// destroyed stream sends neither. nghttp2 goes on asking for the body, gets 0 bytes each time, and
// makes empty DATA frames without end: the process hangs and grows by 300 MB a second (seen with
// Node.js 22.19 and 24.21, undici 8.12). A push service causes that by keeping its window shut for
// longer than a time-out, and so does a freeze of the process while it sends. With the code CANCEL
// Node.js sends RST_STREAM at once.

subscribe("http2.client.stream.created", (message) => {
  const { stream } = message as { readonly stream: ClientHttp2Stream }
  const close = stream.close.bind(stream)
  stream.close = (code = constants.NGHTTP2_CANCEL, done) => close(code, done)
})
