// Serves the pipeline on a socket: an HTTP request becomes an Ask, an Answer becomes an HTTP response.
import type { IncomingMessage, ServerResponse } from "node:http"
import { NodeHttpServer, NodeHttpServerRequest } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { HttpServer, HttpServerRequest, HttpServerResponse } from "effect/http"
import { Settings } from "#config"
import type { Answer, Ask, Services } from "./ask.ts"
import { constantHeaders } from "./decorate.ts"
import { wireAnswer } from "./faults.ts"
import { makeServer } from "./node-server.ts"
import { answerTo } from "./pipeline.ts"
import { readBytes } from "./request-body.ts"
import { accountOf, clientOf, makeTrust } from "./server/address.ts"
import { GatewaySettings } from "./settings.ts"

/** How long requests under way may take once we are told to stop. */
const shutdownMillis = 10_000

const askOf = (
  request: HttpServerRequest.HttpServerRequest,
  isTrusted: (address: string) => boolean
): Ask => {
  const { remoteAddress } = (request.source as IncomingMessage).socket
  const length = request.headers["content-length"]
  return {
    method: request.method,
    target: request.url,
    headers: request.headers,
    hasBody:
      request.headers["transfer-encoding"] !== undefined ||
      (length !== undefined && length !== "0"),
    body: (bytesMax) =>
      readBytes(
        NodeHttpServerRequest.toIncomingMessage(request) as IncomingMessage,
        NodeHttpServerRequest.toServerResponse(request) as ServerResponse,
        bytesMax
      ),
    batched: false,
    address: accountOf(clientOf(remoteAddress, request.headers["x-forwarded-for"], isTrusted))
  }
}

/** Of a request that Node does not hand over there is only the first line. */
const bare = (method: string, target: string): Ask => ({
  method,
  target,
  headers: {},
  hasBody: false,
  body: () => Effect.succeed(new Uint8Array()),
  batched: false,
  address: ""
})

const responseOf = ({
  body,
  headers,
  html,
  status
}: Answer): HttpServerResponse.HttpServerResponse => {
  if (html !== undefined)
    return HttpServerResponse.text(html, { status, headers, contentType: headers["Content-Type"] })
  if (body === undefined) return HttpServerResponse.empty({ status, headers })
  return HttpServerResponse.text(JSON.stringify(body), {
    status,
    headers,
    contentType: "application/json; charset=UTF-8"
  })
}

/** RFC 9112 section 3.2. */
const isHostless = ({ headers, source }: HttpServerRequest.HttpServerRequest): boolean =>
  headers["host"] === undefined && (source as IncomingMessage).httpVersion === "1.1"

/** Serves HTTP for as long as it lives. On shutdown, requests under way are finished; connections that only wait are closed. */
export const gatewayLayer = Layer.unwrap(
  Effect.gen(function* () {
    const settings = yield* Settings
    const { channelWritePrincipals, host, port } = settings
    const isTrusted = makeTrust((yield* GatewaySettings).trustedProxies)
    if (channelWritePrincipals.length === 0) {
      yield* Effect.logWarning(
        "BELLCAST_CHANNEL_WRITE_PRINCIPALS is empty: over HTTP nobody may publish but whom `bellcast permissions` names for a channel"
      )
    }
    const services = yield* Effect.context<Services>()
    const answer = (method: string, target: string) =>
      Effect.runPromiseWith(services)(answerTo(bare(method, target)))
    const server = NodeHttpServer.layerServer(() => makeServer(answer), {
      host,
      port,
      gracefulShutdownTimeout: shutdownMillis
    })
    const app = Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
      isHostless(request)
        ? Effect.succeed(responseOf({ ...wireAnswer("noHost"), headers: constantHeaders }))
        : Effect.map(answerTo(askOf(request, isTrusted)), responseOf)
    )
    return HttpServer.serve(app).pipe(Layer.provide(server))
  })
).pipe(Layer.provide(GatewaySettings.layer))
