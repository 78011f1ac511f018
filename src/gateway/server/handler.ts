// Handles HTTP requests: makes each an ApiRequest, runs the pipeline, and sends the ApiResponse,
// all within the limits per address.
import type { IncomingMessage, ServerResponse } from "node:http"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import { makeShares, type Shares } from "#basics/limits.ts"
import { Settings } from "#config"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { httpTurnedAway } from "#telemetry/request-metrics.ts"
import { accountOf, clientOf, makeTrust, plainAddress } from "../client-address.ts"
import { type ApiRequest, BodyBroken, BodyCrowded, BodyTooLarge } from "../http/request.ts"
import { type ApiResponse, errorResponse } from "../http/response.ts"
import { corsHeaders } from "../http/response-headers.ts"
import { Gateway } from "../operation.ts"
import { GatewaySettings } from "../settings.ts"
import { sendEvents, sendResponse, UnreadResponses } from "./send.ts"
import { inTurn, noteAnswered } from "./server.ts"

/**
 * Bytes of responses to batches that are not complete yet. One address may have 4 of the largest,
 * all together 16: the entries of all batches take turns, so their responses grow at the same time.
 */
const batchBytesPerAddressMax = 16 * 1024 ** 2
const batchBytesMax = 64 * 1024 ** 2

/** Bytes of all bodies in memory. Parsed and decoded, a body takes about ten times its bytes. */
const bodyBytesMax = 64 * 1024 ** 2

/**
 * Bytes of bodies of one address in memory, from their arrival until the responses end: 20 of the
 * largest batches.
 */
const bodyBytesPerAddressMax = 8 * 1024 ** 2

type Bound = "connections" | "address"

/** The state of a handler, which its requests share. */
interface Handler {
  readonly run: ReturnType<typeof Effect.runForkWith<never>>
  readonly handleRequest: Gateway["Service"]["handleRequest"]
  readonly isTrusted: (address: string) => boolean
  readonly corsOrigins: ReadonlyArray<string>
  /** Bytes of request bodies in memory. */
  readonly bodies: Shares
  /** Bytes of incomplete responses to batches. */
  readonly batches: Shares
  /** Requests that run. */
  readonly running: Shares
  readonly begin: Begin
  readonly unread: UnreadResponses
  /** Returns when the server closes: then streams of events end. */
  readonly leaving: Effect.Effect<void>
  readonly warnForwarded: Effect.Effect<void>
  /** Counts and logs a connection or request beyond a limit. */
  readonly turnAway: (bound: Bound, address: string) => void
  /** The 429 beyond the limits of an address. */
  readonly tooMany: ApiResponse
  /** The 503 when there is no memory for a response. */
  readonly busy: ApiResponse
}

/** The handler of requests, and what the bounds on connections share with it. */
export const makeHandler = Effect.gen(function* () {
  const { retryAfterSeconds } = yield* Settings
  const { connectionsPerAddressMax, corsOrigins, trustedProxies } = yield* GatewaySettings
  const { handleRequest } = yield* Gateway
  const run = Effect.runForkWith(yield* Effect.context())
  const unread = yield* Effect.acquireRelease(
    Effect.sync(() => new UnreadResponses(() => httpTurnedAway("unread"))),
    (responses) => Effect.sync(() => responses.stop())
  )
  const warnForwarded = makeRateLimitedLog(
    "X-Forwarded-For is ignored: BELLCAST_TRUSTED_PROXIES lacks its sender"
  )
  const headers = { "Retry-After": String(retryAfterSeconds) }
  const left = Latch.makeUnsafe()
  const handler: Handler = {
    run,
    handleRequest,
    isTrusted: makeTrust(trustedProxies),
    corsOrigins,
    bodies: makeShares(bodyBytesPerAddressMax),
    batches: makeShares(batchBytesPerAddressMax, batchBytesMax),
    running: makeShares(connectionsPerAddressMax),
    begin: makeRounds(),
    unread,
    leaving: left.await,
    warnForwarded: Effect.suspend(() => warnForwarded({})),
    turnAway: makeTurnAway(run),
    tooMany: errorResponse("too-many-at-once", { headers }),
    busy: errorResponse("unavailable", { headers })
  }
  const { isTrusted, tooMany, turnAway } = handler
  return { handle: handleWith(handler), isTrusted, leave: left.open, tooMany, turnAway }
})

const makeTurnAway = (run: Handler["run"]): Handler["turnAway"] => {
  const warn = {
    connections: makeRateLimitedLog("connections are closed: BELLCAST_CONNECTIONS_MAX are open"),
    address: makeRateLimitedLog("an address has BELLCAST_CONNECTIONS_PER_ADDRESS_MAX connections")
  }
  return (bound, address) => {
    httpTurnedAway(bound)
    run(warn[bound]({ address }))
  }
}

const handleWith =
  (handler: Handler) =>
  (request: IncomingMessage, response: ServerResponse): void => {
    const apiRequest = requestOf(handler, request, response)
    const run = () =>
      handler.begin(apiRequest.address, () => respond(handler, apiRequest, request, response))
    if (!inTurn({ request, response, run })) httpTurnedAway("pipelined")
    response.once("close", () => noteAnswered(request.socket))
  }

const requestOf = (
  handler: Handler,
  request: IncomingMessage,
  response: ServerResponse
): ApiRequest => {
  const { batches, bodies } = handler
  const { headers, method = "", url = "" } = request
  const address = addressOf(handler, request)
  const joined = headersOf(request)
  const length = headers["content-length"]
  let reserved = 0
  return {
    method,
    target: url,
    headers: joined,
    received: joined,
    hasBody: headers["transfer-encoding"] !== undefined || (length !== undefined && length !== "0"),
    body: (bytesMax) => readBytes(request, response, bytesMax, bodies, address),
    reserveResponseBytes: (bytes) => {
      const ofAddress = batches.of(address) + bytes
      if (!batches.take(address, bytes))
        return ofAddress > batchBytesPerAddressMax ? "too-many-at-once" : "unavailable"
      // Node.js warns of more than ten listeners, and a batch reserves for each of its entries.
      if (reserved === 0) response.once("close", () => batches.give(address, reserved))
      reserved += bytes
      return undefined
    },
    batched: false,
    address,
    fromTrustedProxy: handler.isTrusted(plainAddress(request.socket.remoteAddress)),
    port: request.socket.localPort ?? 0,
    isRepeated: (name) => (request.headersDistinct[name]?.length ?? 0) > 1
  }
}

const headersOf = ({ headers }: IncomingMessage): ApiRequest["headers"] => {
  const joined: Record<string, string | undefined> = {}
  for (const [name, value] of Object.entries(headers)) {
    joined[name] = Array.isArray(value) ? value.join(", ") : value
  }
  return joined
}

/** The address of the client, as the key of its limits. */
const addressOf = (handler: Handler, { headers, socket }: IncomingMessage): string => {
  const { isTrusted, run, warnForwarded } = handler
  const forwarded = headers["x-forwarded-for"] as string | undefined
  if (forwarded !== undefined && !isTrusted(plainAddress(socket.remoteAddress))) run(warnForwarded)
  return accountOf(clientOf(socket.remoteAddress, forwarded, isTrusted))
}

/**
 * The body of a request. Fails when the body has more than `bytesMax` bytes, ends too early, or
 * exceeds the memory for bodies. The rest of a refused body is read and dropped.
 */
const readBytes = (
  request: IncomingMessage,
  response: ServerResponse,
  bytesMax: number,
  shares: Shares,
  account: string
): Effect.Effect<Uint8Array, BodyTooLarge | BodyBroken | BodyCrowded> =>
  Effect.callback((resume) => {
    const parts: Array<Buffer> = []
    let size = 0
    let taken = 0
    response.once("close", () => shares.give(account, taken))
    const { socket } = request
    const stop = () => {
      socket.off("end", halfClosed)
      return request.off("data", take).off("end", finish).off("error", fail).off("close", fail)
    }
    const drop = (why: BodyTooLarge | BodyCrowded) => {
      parts.length = 0
      stop().resume()
      resume(Effect.fail(why))
    }
    const take = (part: Buffer) => {
      size += part.length
      if (size > bytesMax) return drop(new BodyTooLarge())
      if (!shares.take(account, part.length)) return drop(new BodyCrowded({ by: "address" }))
      taken += part.length
      if (shares.total() > bodyBytesMax) return drop(new BodyCrowded({ by: "all" }))
      parts.push(part)
    }
    const finish = () => {
      stop()
      resume(Effect.succeed(parts.length === 1 ? parts[0]! : Buffer.concat(parts)))
    }
    const fail = () => {
      stop()
      resume(Effect.fail(new BodyBroken()))
    }
    // After a half-close the body stays incomplete, but the client can still read a response.
    const halfClosed = () => {
      if (!request.complete) fail()
    }
    if (request.destroyed || (socket.readableEnded && !request.complete)) return fail()
    // Refuse before 100-continue: then the client does not send the body.
    if (Number(request.headers["content-length"]) > bytesMax)
      return resume(Effect.fail(new BodyTooLarge()))
    // An HTTP/1.0 client would take 100 for the final response (RFC 9110 section 10.1.1).
    if (/\b100-continue\b/i.test(request.headers.expect ?? "") && request.httpVersion !== "1.0")
      response.writeContinue()
    socket.on("end", halfClosed)
    request.on("data", take).on("end", finish).on("error", fail).on("close", fail)
    return Effect.sync(stop)
  })

/** Runs the pipeline and sends its response. */
const respond = (
  handler: Handler,
  apiRequest: ApiRequest,
  request: IncomingMessage,
  response: ServerResponse
): void => {
  const { busy, corsOrigins, handleRequest, leaving, run, running, tooMany, turnAway, unread } =
    handler
  const { address } = apiRequest
  // The client left while the request waited, or an earlier response closed the connection.
  if (request.socket.destroyed || response.socket === null) return
  // Pages need CORS headers on the responses that do not come from the pipeline, too.
  const withCors = (plain: ApiResponse): ApiResponse => {
    const cors = corsHeaders(apiRequest, corsOrigins, undefined, plain.status)
    return { ...plain, headers: { ...cors, ...plain.headers } }
  }
  const insteadWhenBusy = () => {
    httpTurnedAway("unread")
    return withCors(busy)
  }
  const recipient = { account: address, insteadWhenBusy }
  const send = (complete: ApiResponse) =>
    sendResponse(request, response, complete, unread, recipient)
  const wrongHead = headError(request.rawHeaders, request.httpVersion)
  if (wrongHead !== undefined) {
    send(withCors(errorResponse(wrongHead)))
    return
  }
  if (!running.take(address, 1)) {
    turnAway("address", address)
    send(withCors(tooMany))
    return
  }
  const respondWith = ({ events, ...complete }: ApiResponse) =>
    events === undefined || apiRequest.method === "HEAD"
      ? Effect.sync(() => send(complete))
      : sendEvents(request, response, { ...complete, events }, unread, {
          account: address,
          leaving
        })
  const fiber = run(Effect.flatMap(handleRequest(apiRequest), respondWith))
  response.once("close", () => {
    running.give(address, 1)
    // Stop the work for a client that left before its response.
    if (!response.writableEnded) fiber.interruptUnsafe()
  })
}

/** A host name or address, with or without a port (RFC 3986 section 3.2.2). May be empty. */
const host = /^(?:[\w.~!$&'()*+,;=%-]*|\[[0-9A-Fa-f:.]+\])(?::\d*)?$/

/**
 * The error of headers that may stand there once, Host (RFC 9112 section 3.2) and Authorization
 * (RFC 9110 section 5.3); undefined for a valid head. Of two, a proxy and this server might choose
 * different ones. `rawHeaders` alternates names and values.
 */
const headError = (
  rawHeaders: ReadonlyArray<string>,
  httpVersion: string
): "no-host" | "wrong-host" | "two-authorizations" | undefined => {
  const valuesOf = (name: string) =>
    rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]!.toLowerCase() === name)
  const [value, ...others] = valuesOf("host")
  if (value === undefined && httpVersion === "1.1") return "no-host"
  if (value !== undefined && (others.length > 0 || !host.test(value))) return "wrong-host"
  return valuesOf("authorization").length > 1 ? "two-authorizations" : undefined
}

/** How long one round may start requests. A request takes 1 to 5 ms. */
const roundMillis = 20

/** Starts `job` in this round or a later one. Jobs of different accounts take turns. */
type Begin = (account: string, job: () => void) => void

/**
 * Shares the event loop fairly among clients. Node.js hands over every request that arrived in one
 * round of the event loop: 300 connections of one client would delay all other clients, and all
 * timers of the process.
 */
export const makeRounds = (): Begin => {
  /** The waiting jobs of each account, in the order of the accounts' turns. */
  const waiting = new Map<string, Array<() => void>>()
  let scheduled = false
  const takeTurn = (account: string, jobs: Array<() => void>) => {
    waiting.delete(account)
    const job = jobs.shift()
    if (jobs.length > 0) waiting.set(account, jobs)
    job?.()
  }
  const round = () => {
    const ends = performance.now() + roundMillis
    try {
      for (const [account, jobs] of waiting) {
        takeTurn(account, jobs)
        if (performance.now() > ends) break
      }
    } finally {
      scheduled = waiting.size > 0
      if (scheduled) setImmediate(round)
    }
  }
  return (account, job) => {
    const jobs = waiting.get(account)
    if (jobs === undefined) waiting.set(account, [job])
    else jobs.push(job)
    if (scheduled) return
    scheduled = true
    setImmediate(round)
  }
}
