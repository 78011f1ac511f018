// Sends an ApiResponse over HTTP, at once or event by event, within limits on what clients do not
// read: a client that never reads must not fill the memory.
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Semaphore from "effect/Semaphore"
import { makeShares } from "#basics/limits.ts"
import { reasonPhrase } from "../http/error-table.ts"
import type { ApiResponse, Write } from "../http/response.ts"
import { headersOfEvery } from "../http/response-headers.ts"

const json = "application/json; charset=UTF-8"

interface Recipient {
  /** The key of the client's limits. */
  readonly account: string
  /** The response that is sent instead when there is no memory for a response. */
  readonly insteadWhenBusy: () => ApiResponse
}

/** Sends a response. On an error of Node.js it closes the connection. */
export const sendResponse = (
  request: IncomingMessage,
  response: ServerResponse,
  apiResponse: ApiResponse,
  unread: UnreadResponses,
  { account, insteadWhenBusy }: Recipient
): void => {
  const { socket } = request
  const text = textOf(apiResponse)
  try {
    if (unread.add(socket, account, Buffer.byteLength(text ?? ""))) {
      response.once("close", () => unread.remove(socket))
      write(request, response, apiResponse, text)
    } else {
      const instead = insteadWhenBusy()
      write(request, response, instead, textOf(instead))
    }
  } catch {
    // Node.js rejected a header. Close: the client must not wait for a response that never comes.
    socket.destroy()
  }
}

const write = (
  request: IncomingMessage,
  response: ServerResponse,
  apiResponse: ApiResponse,
  text: Text
): void => {
  const { status } = apiResponse
  response.writeHead(status, reasonPhrase(status), headersOf(apiResponse, text))
  const content = request.method === "HEAD" ? undefined : text
  if (request.complete || response.shouldKeepAlive) response.end(content)
  else endLater(request, response, content)
}

const headersOf = ({ headers, status }: ApiResponse, text: Text) => ({
  ...headersOfEvery(status),
  ...(text === undefined
    ? {}
    : { "Content-Type": json, "Content-Length": Buffer.byteLength(text) }),
  ...headers
})

const textOf = ({ body, encoded, jsonText, text }: ApiResponse) =>
  encoded ?? text ?? jsonText ?? (body === undefined ? undefined : JSON.stringify(body))

type Text = ReturnType<typeof textOf>

/** A client that sends for longer may lose its response. */
const readOnMillis = 2_000

/**
 * Ends a response, and then its connection, when the rest of the request's body was read and
 * dropped. If a socket is closed with unread bytes, its peer is reset and loses the response.
 */
const endLater = (request: IncomingMessage, response: ServerResponse, content: Text): void => {
  if (content === undefined) response.flushHeaders()
  else response.write(content)
  const end = () => {
    clearTimeout(timer)
    response.end()
  }
  const timer = setTimeout(end, readOnMillis)
  request.once("close", end)
  request.resume()
}

/**
 * Sends the head of a response, and its events until they end or `leaving` returns. A reader who is
 * slower than the events delays them: only one is in memory.
 */
export const sendEvents = (
  request: IncomingMessage,
  response: ServerResponse,
  { events, headers, status }: ApiResponse & Required<Pick<ApiResponse, "events">>,
  unread: UnreadResponses,
  { account, leaving }: { readonly account: string; readonly leaving: Effect.Effect<void> }
): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { socket } = request
    // A client that leaves closes its half first, and this half only when something is written.
    const close = () => void socket.destroy()
    socket.once("end", close)
    response.once("close", () => {
      socket.off("end", close)
      unread.remove(socket)
    })
    if (socket.readableEnded) close()
    response.writeHead(status, reasonPhrase(status), { ...headersOfEvery(status), ...headers })
    response.flushHeaders()
    const flushed = Latch.makeUnsafe(true)
    return events(writeTo(response, unread, account, flushed)).pipe(
      Effect.raceFirst(leaving),
      Effect.andThen(
        Effect.sync(() => {
          // A client that reads nothing would not read the end either.
          if (response.writableLength > 0) socket.destroy()
          else response.end()
        })
      )
    )
  })

/** Returns when the text has left the memory of this process. */
const writeTo = (
  response: ServerResponse,
  unread: UnreadResponses,
  account: string,
  flushed: Latch.Latch
): Write => {
  const { socket } = response
  const turns = Semaphore.makeUnsafe(1)
  const begin = (text: string) => {
    if (socket === null || response.destroyed) return
    // Too much is unread: end this stream. Its client comes back by itself.
    if (!unread.add(socket, account, Buffer.byteLength(text))) return void response.destroy()
    flushed.closeUnsafe()
    response.write(text, () => {
      unread.remove(socket)
      flushed.openUnsafe()
    })
  }
  return (text) =>
    flushed.await.pipe(
      Effect.andThen(Effect.sync(() => begin(text))),
      Effect.andThen(flushed.await),
      turns.withPermit
    )
}

/** Bytes of all unread responses: 16 of the largest. */
const bytesMax = 64 * 1024 ** 2
/** Bytes of unread responses of one account. */
const bytesPerAccountMax = 16 * 1024 ** 2
/** Time to read a response: 30 s, and 1 s more per 16 KiB. */
const readMillis = 30_000
const bytesPerMilli = 16.384
/** A younger response may still be on its way to a client that reads. */
const freshMillis = 1_000
const sweepMillis = 1_000

interface Unread {
  readonly account: string
  readonly bytes: number
  readonly since: number
  readonly until: number
}

/**
 * The responses that clients have not read. Each has a deadline; those of one account, and all
 * together, have a limit. Calls `onReset` for every connection that is reset
 * because its client does not read.
 */
export class UnreadResponses {
  readonly #unread = new Map<Socket, Unread>()
  readonly #shares = makeShares(bytesPerAccountMax, bytesMax)
  readonly #onReset: () => void
  /** Runs while there are unread responses. */
  #timer: NodeJS.Timeout | undefined

  constructor(onReset: () => void) {
    this.#onReset = onReset
  }

  /** Counts a response until `remove`. False when the limits leave no memory for the response. */
  add(socket: Socket, account: string, bytes: number): boolean {
    const now = performance.now()
    if (!this.#shares.take(account, bytes)) {
      this.#makeRoom(account, bytes, now)
      if (!this.#shares.take(account, bytes)) return false
    }
    const until = now + readMillis + bytes / bytesPerMilli
    this.#unread.set(socket, { account, bytes, since: now, until })
    this.#timer ??= setInterval(() => this.#sweep(), sweepMillis).unref()
    return true
  }

  remove(socket: Socket): void {
    const response = this.#unread.get(socket)
    if (response === undefined) return
    this.#unread.delete(socket)
    this.#shares.give(response.account, response.bytes)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #reset(socket: Socket): void {
    this.remove(socket)
    this.#onReset()
    // Not a close, which would leave the response in the kernel until the peer reads.
    socket.resetAndDestroy()
  }

  #sweep(): void {
    const now = performance.now()
    for (const [socket, { until }] of this.#unread) if (now > until) this.#reset(socket)
    if (this.#unread.size > 0) return
    this.stop()
    this.#timer = undefined
  }

  /** Resets the oldest connections of an account while `isNeeded`. */
  #resetOldest(account: string, isNeeded: () => boolean, now: number): void {
    for (const [socket, { account: owner, since }] of this.#unread) {
      if (!isNeeded() || now - since < freshMillis) return
      if (owner === account) this.#reset(socket)
    }
  }

  /** Frees memory: first that of this account, then that of the account with the most bytes. */
  #makeRoom(account: string, bytes: number, now: number): void {
    this.#resetOldest(account, () => this.#shares.of(account) + bytes > bytesPerAccountMax, now)
    const isFull = () => this.#shares.total() + bytes > bytesMax
    if (isFull()) this.#resetOldest(this.#shares.largest(account, bytes), isFull, now)
  }
}
