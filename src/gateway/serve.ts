// Serves the API on a TCP port and on NATS, for as long as its layer lives.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { States } from "#broadcasts/states.ts"
import { type NotBuilt, requireScripts } from "#browser/serving/files.ts"
import { Settings } from "#config"
import { natsPolicy, policyOf } from "#domain/publisher.ts"
import { Identity } from "#identity/identity.ts"
import { Health } from "#monitoring/health.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { accountOf, clientOf } from "./client-address.ts"
import type { ApiRequest } from "./http/request.ts"
import { Gateway } from "./operation.ts"
import { pipelineLayer } from "./pipeline/pipeline.ts"
import { makeHandler } from "./server/handler.ts"
import { serveNats } from "./server/nats-requests.ts"
import { boundConnections, close, listen, makeServer, refuseOn } from "./server/server.ts"
import { GatewaySettings } from "./settings.ts"

/** The port of the API in this process; undefined: it serves none. */
export class ApiPort extends Context.Service<ApiPort, { current: number | undefined }>()(
  "bellcast/gateway/ApiPort"
) {
  static readonly layer = Layer.sync(ApiPort, () => ({ current: undefined }))
}

/** Serves HTTP and requests on NATS for as long as the layer lives. */
export const gatewayLayer = Layer.effectDiscard(
  Effect.gen(function* () {
    yield* Effect.try({ try: requireScripts, catch: (error) => error as NotBuilt })
    const { host, port } = yield* Settings
    const { connectionsMax, connectionsPerAddressMax } = yield* GatewaySettings
    const { policies } = yield* Identity
    const apiPort = yield* ApiPort
    yield* warnOfRights(policies)
    const { add } = yield* Health
    add(policies.flatMap(({ isUp, name }) => (isUp === undefined ? [] : [{ name, isWell: isUp }])))
    const { handleRequest } = yield* Gateway
    const context = yield* Effect.context()
    const { handle, isTrusted, leave, tooMany, turnAway } = yield* makeHandler
    const server = makeServer(handle, ({ forwarded, method, peer, target }) => {
      const address = accountOf(clientOf(peer, forwarded, isTrusted))
      const request = requestOfLine(method, target, address, apiPort.current ?? port)
      return Effect.runPromiseWith(context)(handleRequest(request))
    })
    const sockets = boundConnections(server, {
      max: connectionsMax,
      perAddressMax: connectionsPerAddressMax,
      isTrusted,
      refuse: (socket) => refuseOn(socket, tooMany),
      refused: turnAway
    })
    // Each drain may take 10 s: one after the other they would exceed the bound of the stop.
    const drains = yield* Scope.fork(yield* Effect.scope, "parallel")
    apiPort.current = yield* Effect.acquireRelease(listen(server, host, port), () =>
      Effect.andThen(leave, close(server, sockets))
    ).pipe(Scope.provide(drains))
    const warn = makeRateLimitedLog("a connection could not be accepted")
    const runLog = Effect.runForkWith(context)
    // Without a listener an error such as EMFILE would end the process.
    server.on("error", (cause) => runLog(warn({ err: cause })))
    yield* Scope.provide(serveNats, drains)
  })
).pipe(Layer.provide(pipelineLayer), Layer.provide([GatewaySettings.layer, States.layer]))

/** Warns of settings by which fewer people have rights than an operator may have meant. */
const warnOfRights = Effect.fnUntraced(function* (
  policies: ReadonlyArray<{ readonly name: string }>
) {
  const settings = yield* Settings
  if (settings.channelWritePrincipals.length === 0)
    yield* Effect.logWarning(
      "BELLCAST_CHANNEL_WRITE_PRINCIPALS is empty: over HTTP only those may publish whom " +
        "`bellcast permissions` names for a channel, and tokens of `bellcast token`"
    )
  const principalsOf = {
    CHANNEL_WRITE_PRINCIPALS: settings.channelWritePrincipals.map(({ principal }) => principal),
    CHANNEL_REGISTER_PRINCIPALS: settings.channelRegisterPrincipals.map(
      ({ principal }) => principal
    ),
    USER_WRITE_PRINCIPALS: settings.userWritePrincipals,
    OPERATOR_PRINCIPALS: settings.operatorPrincipals
  }
  for (const [setting, principals] of Object.entries(principalsOf)) {
    const named = new Set(principals.flatMap((principal) => policyOf(principal) ?? []))
    for (const name of [natsPolicy, ...policies.map(({ name }) => name)]) named.delete(name)
    if (named.size > 0)
      yield* Effect.logWarning(
        `BELLCAST_${setting} names users of policies that are off ` +
          `(${[...named].join(", ")}): BELLCAST_AUTH_POLICIES does not name these`
      )
  }
})

/** The request of which Node.js hands over only the first line. */
const requestOfLine = (
  method: string,
  target: string,
  address: string,
  port: number
): ApiRequest => ({
  method,
  target,
  headers: {},
  received: {},
  hasBody: false,
  body: () => Effect.succeed(new Uint8Array()),
  reserveResponseBytes: () => undefined,
  batched: false,
  address,
  fromTrustedProxy: false,
  port,
  isRepeated: () => false
})
