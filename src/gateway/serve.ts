// Serves the pipeline on a socket: an HTTP request becomes an Ask, an Answer an HTTP response.
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import { Server as NetServer, type Socket } from "node:net"
import { Data, Effect, Layer } from "effect"
import { Settings } from "#config"
import { httpTurnedAway } from "#telemetry/metrics.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { corsHeaders } from "./http/cors.ts"
import { errorResponse, wireErrorResponse } from "./http/errors.ts"
import type { ApiRequest, ApiResponse, Services } from "./http/request.ts"
import { handleRequest } from "./pipeline.ts"
import { accountOf, clientOf, makeTrust, plainAddress } from "./server/address.ts"
import { boundConnections } from "./server/connections.ts"
import { hostError } from "./server/host.ts"
import { closeIdle, isSilent, noteAnswered } from "./server/idle.ts"
import { refuseOn } from "./server/refuse.ts"
import { bodyBytesPerAddressMax, readBytes } from "./server/request-body.ts"
import { makeRounds } from "./server/rounds.ts"
import { sendResponse } from "./server/send-response.ts"
import { makeServer } from "./server/server.ts"
import { makeShares } from "./server/shares.ts"
import { inTurn } from "./server/turns.ts"
import { makeUnreadResponses } from "./server/unread.ts"
import { GatewaySettings } from "./settings.ts"

/** How long requests under way may take once the process is told to stop. */
const shutdownMillis = 10_000
/** How long a request that has begun to arrive then has until it is whole. */
const arrivingMillis = 1_000
/** How often a server that closes looks for connections that have become idle. */
const lookMillis = 50

/**
 * Bytes of answers to batches that are being made: of one address 4, of all 16 of the largest. Their
 * entries take turns, so that all batches under way would grow side by side.
 */
const buildingPerAddressMax = 16 * 1024 ** 2
const buildingMax = 64 * 1024 ** 2

/** HTTP cannot be served: the address is in use, or is none of this machine's. */
export class ServeError extends Data.TaggedError("ServeError")<{ readonly cause: Error }> {}

/** An Ask of a request that Node does not hand over: only its first line is known. */
const requestOfLine = (method: string, target: string): ApiRequest => ({
  method,
  target,
  headers: {},
  hasBody: false,
  body: () => Effect.succeed(new Uint8Array()),
  reserveResponseBytes: () => true,
  batched: false,
  address: ""
})

const headersOf = ({ headers }: IncomingMessage): ApiRequest["headers"] => {
  const joined: Record<string, string | undefined> = {}
  for (const [name, value] of Object.entries(headers)) {
    joined[name] = Array.isArray(value) ? value.join(", ") : value
  }
  return joined
}

/** What a gateway needs to turn requests into answers. */
const makeHandler = Effect.gen(function* () {
  const { retryAfterSeconds } = yield* Settings
  const { connectionsPerAddressMax, corsOrigins, trustedProxies } = yield* GatewaySettings
  const isTrusted = makeTrust(trustedProxies)
  const run = Effect.runForkWith(yield* Effect.context<Services>())
  const bodies = makeShares(bodyBytesPerAddressMax)
  const building = makeShares(buildingPerAddressMax, buildingMax)
  const begin = makeRounds()
  const underWay = makeShares(connectionsPerAddressMax)
  const unread = yield* Effect.acquireRelease(
    Effect.sync(() => makeUnreadResponses(() => httpTurnedAway("unread"))),
    ({ stop }) => Effect.sync(stop)
  )
  const warn = {
    connections: makeRateLimitedLog("connections are closed: BELLCAST_CONNECTIONS_MAX are open"),
    address: makeRateLimitedLog("an address has BELLCAST_CONNECTIONS_PER_ADDRESS_MAX connections"),
    forwarded: makeRateLimitedLog(
      "X-Forwarded-For is ignored: BELLCAST_TRUSTED_PROXIES lacks its sender"
    )
  }
  const turnAway = (bound: "connections" | "address", address: string) => {
    httpTurnedAway(bound)
    run(warn[bound]({ address }))
  }
  const retryLater = { "Retry-After": String(retryAfterSeconds) }
  const refusal: ApiResponse = errorResponse("tooManyAtOnce", { headers: retryLater })

  const requestOf = (request: IncomingMessage, response: ServerResponse): ApiRequest => {
    const { headers, method = "", socket, url = "" } = request
    const forwarded = headers["x-forwarded-for"] as string | undefined
    const client = clientOf(socket.remoteAddress, forwarded, isTrusted)
    const isIgnored = forwarded !== undefined && !isTrusted(plainAddress(socket.remoteAddress))
    if (isIgnored) run(warn.forwarded({}))
    const address = accountOf(client)
    const length = headers["content-length"]
    return {
      method,
      target: url,
      headers: headersOf(request),
      hasBody:
        headers["transfer-encoding"] !== undefined || (length !== undefined && length !== "0"),
      body: (bytesMax) => readBytes(request, response, bytesMax, bodies, address),
      reserveResponseBytes: (bytes) => {
        const isReserved = building.take(address, bytes)
        if (isReserved) response.once("close", () => building.give(address, bytes))
        return isReserved
      },
      batched: false,
      address
    }
  }

  const answer = (ask: ApiRequest, request: IncomingMessage, response: ServerResponse): void => {
    // Its client left while it waited, or an earlier answer has closed the connection.
    if (request.socket.destroyed || response.socket === null) return
    // A page can read what stands outside the pipeline, too.
    const withCors = (told: ApiResponse): ApiResponse => {
      const cors = corsHeaders(ask, corsOrigins, undefined, told.status)
      return { ...told, headers: { ...cors, ...told.headers } }
    }
    const busy = () => {
      httpTurnedAway("unread")
      return withCors(errorResponse("unavailable", { headers: retryLater }))
    }
    const to = { account: ask.address, busy }
    const send = (told: ApiResponse) => sendResponse(request, response, told, unread, to)
    const refuseWith = (told: ApiResponse) => send(withCors(told))
    const error = hostError(request.rawHeaders, request.httpVersion)
    if (error !== undefined) {
      refuseWith(wireErrorResponse(error))
      return
    }
    if (!underWay.take(ask.address, 1)) {
      turnAway("address", ask.address)
      refuseWith(refusal)
      return
    }
    const fiber = run(Effect.map(handleRequest(ask), send))
    response.once("close", () => {
      underWay.give(ask.address, 1)
      // A client that is gone needs no answer.
      if (!response.writableEnded) fiber.interruptUnsafe()
    })
  }

  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    const ask = requestOf(request, response)
    const run = () => begin(ask.address, () => answer(ask, request, response))
    if (!inTurn({ request, response, run })) httpTurnedAway("pipelined")
    response.once("close", () => noteAnswered(request.socket))
  }

  return { handle, isTrusted, refusal, turnAway }
})

const listen = (server: Server, host: string, port: number): Effect.Effect<void, ServeError> =>
  Effect.callback((resume) => {
    const fail = (cause: Error) => resume(Effect.fail(new ServeError({ cause })))
    server.once("error", fail).listen({ host, port }, () => {
      server.off("error", fail)
      resume(Effect.void)
    })
  })

/** Finishes requests under way; connections that only wait are closed. */
const close = (server: Server, sockets: ReadonlySet<Socket>): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const last = setTimeout(() => server.closeAllConnections(), shutdownMillis)
    const began = performance.now()
    const look = () => {
      closeIdle(sockets)
      if (performance.now() - began < arrivingMillis) return
      for (const socket of sockets) if (isSilent(socket)) socket.destroy()
    }
    const looks = setInterval(look, lookMillis)
    // Not the method of node:http, which begins with closeIdleConnections: see idle.ts.
    NetServer.prototype.close.call(server, () => {
      clearTimeout(last)
      clearInterval(looks)
      resume(Effect.void)
    })
    look()
  })

/** Serves HTTP for as long as the layer lives. */
export const gatewayLayer = Layer.effectDiscard(
  Effect.gen(function* () {
    const { channelWritePrincipals, host, port } = yield* Settings
    const { connectionsMax, connectionsPerAddressMax } = yield* GatewaySettings
    if (channelWritePrincipals.length === 0) {
      yield* Effect.logWarning(
        "BELLCAST_CHANNEL_WRITE_PRINCIPALS is empty: over HTTP only those may publish whom " +
          "`bellcast permissions` names for a channel"
      )
    }
    const services = yield* Effect.context<Services>()
    const { handle, isTrusted, refusal, turnAway } = yield* makeHandler
    const respondToLine = (method: string, target: string) =>
      Effect.runPromiseWith(services)(handleRequest(requestOfLine(method, target)))
    const server = makeServer(handle, respondToLine)
    const sockets = boundConnections(server, {
      max: connectionsMax,
      perAddressMax: connectionsPerAddressMax,
      isTrusted,
      refuse: (socket) => refuseOn(socket, refusal),
      refused: turnAway
    })
    yield* Effect.acquireRelease(listen(server, host, port), () => close(server, sockets))
    const warn = makeRateLimitedLog("a connection could not be accepted")
    const runLog = Effect.runForkWith(services)
    // Without a listener an error such as EMFILE would end the process.
    server.on("error", (cause) => runLog(warn({ err: cause })))
  })
).pipe(Layer.provide(GatewaySettings.layer))
