// One request from beginning to end. Many statuses depend on the order of these steps; each names
// the responses that end the request there.
//
//    1  end of service passed ............... 410   (not __lbheartbeat__)
//    2  read-only, and not a reading method . 405   (whatever the path)
//       too many requests of the address . 429   (not heartbeats)
//    3  path not UTF-8 ...................... 400
//    4  route ............................... 307 to the version or without slashes, 404
//    5  method .............................. 405 with Allow; the response to OPTIONS
//    6  Accept .............................. 406, then Content-Type 415
//    7  caller .............................. 429 for too many requests, 412, 401, 403
//    8  Origin, then cross-site requests .... 400
//    9  header, query string, body together . 400 with all errors; 413
//   10  the operation ....................... 2xx, 304, 400, 403, 404, 409, 412, 413, 429, 507
//
// Every response then gets the headers of response-headers.ts and one line in the log.
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { monotonicMillis } from "#clock/clocks.ts"
import { Settings } from "#config"
import type { IdentityUnavailable, TooManyFailures } from "#identity/verdict.ts"
import type { NatsUnavailable } from "#nats/connection/errors.ts"
import { Space } from "#nats/watch/space.ts"
import { Source } from "#settings/source.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { requestAnswered } from "#telemetry/request-metrics.ts"
import { consoleOriginOf, withoutConsole } from "../console.ts"
import { endpoints, endpointsIn } from "../endpoints.ts"
import type { ApiRequest, Call } from "../http/request.ts"
import {
  type ApiResponse,
  checked,
  type ErrorDetail,
  errorResponse,
  ok,
  type Refused,
  refuse,
  refuseInvalid,
  retryAfter
} from "../http/response.ts"
import {
  addCommonHeaders,
  docsUrl,
  originOf,
  originsOf,
  preflightErrors,
  preflightHeaders
} from "../http/response-headers.ts"
import { operationOf, type Route, routeOf } from "../http/routing.ts"
import { versionPrefix } from "../http/version.ts"
import { Gateway } from "../operation.ts"
import { RequestRates } from "../quotas.ts"
import { GatewaySettings } from "../settings.ts"
import {
  authorise,
  checkMedia,
  checkOrigin,
  checkService,
  checkUser,
  identify,
  isOffered,
  methodsOf,
  redirect,
  refuseMethod,
  withChallenge
} from "./checks.ts"
import { isQuiet, logRequest, type Trace } from "./request-log.ts"

/** A request with its route, and what the steps need to know about this server. */
interface RequestContext {
  readonly request: ApiRequest
  readonly route: Route<Endpoint>
  readonly settings: GatewaySettings["Service"]
  readonly origin: string
  readonly rootUrl: string
  readonly trace: Trace
}
type Endpoint = (typeof endpoints)[number]
type Matched = Extract<Route<Endpoint>, { readonly kind: "endpoint" }>

/** The pipeline, with the services that its steps and all operations need. */
export const pipelineLayer = Layer.effect(
  Gateway,
  Effect.gen(function* () {
    type Needs = Effect.Services<ReturnType<typeof handleRequest>>
    const services = yield* Effect.context<Exclude<Needs, Gateway>>()
    const gateway: Gateway["Service"] = {
      endpoints,
      handleRequest: (request) => Effect.provideContext(handleRequest(request), all)
    }
    const all = Context.add(services, Gateway, gateway)
    return gateway
  })
)

/** The response to any request: 500 for a defect, 503 or 507 for an error of the storage. */
const handleRequest = Effect.fnUntraced(function* (request: ApiRequest) {
  const began = yield* monotonicMillis
  const at = yield* Clock.currentTimeMillis
  const settings = yield* GatewaySettings
  const common = yield* Settings
  const { isDevelopment } = yield* Source
  const consoleOrigin = consoleOriginOf(settings, common, request, isDevelopment)
  // Entries of a batch choose headers of their own, by which the console tells its own pages.
  const hasConsole = consoleOrigin !== undefined && !request.batched
  const offered = endpointsIn(isDevelopment, hasConsole)
  const routed = routeOf(offered, request.target)
  const route = hasConsole ? routed : withoutConsole(routed)
  const context = contextOf(
    request,
    settings,
    consoleOrigin ?? originOf(common, request),
    route,
    at
  )
  const { rootUrl, trace } = context
  const response = yield* runSteps(context).pipe(
    Effect.catchTags({
      Refused: ({ response }) => Effect.succeed(response),
      IdentityUnavailable: fromIdentityUnavailable,
      TooManyFailures: fromTooManyFailures,
      NatsUnavailable: fromNatsUnavailable
    }),
    Effect.catchCause((cause) => fromCause(cause, context))
  )
  const endpoint = route.kind === "endpoint" ? route.endpoint : undefined
  const now = yield* Clock.currentTimeMillis
  const { retryAfterSeconds } = common
  const complete = addCommonHeaders(request, response, endpoint, {
    settings,
    retryAfterSeconds,
    rootUrl,
    now
  })
  const millis = (yield* monotonicMillis) - began
  const quiet = isQuiet(settings.logRequests, endpoint?.path, complete, trace)
  yield* logRequest(request, complete, trace, millis, quiet)
  requestAnswered(request.method, endpoint?.path ?? "none", complete.status, millis)
  return complete
})

const contextOf = (
  request: ApiRequest,
  settings: GatewaySettings["Service"],
  origin: string,
  route: Route<Endpoint>,
  began: number
): RequestContext => ({
  request,
  route,
  settings,
  origin,
  rootUrl: `${origin}/${versionPrefix}`,
  trace: { began, caller: undefined, person: undefined }
})

/** Steps 1 to 10. */
const runSteps = Effect.fnUntraced(function* (context: RequestContext) {
  const { origin, request, route, settings, trace } = context
  yield* checked(checkService(request, route, settings, trace.began))
  if (!isProbe(route)) yield* (yield* RequestRates).ofAddress(request.address)
  switch (route.kind) {
    case "endpoint":
      return yield* runOperation(context, route)
    case "undecodable":
      return yield* refuse("undecodable-url")
    case "unknown":
      return yield* refuse(route.version ? "unknown-version" : "unknown-url")
    case "redirect":
      return yield* redirect(request, route, origin, trace.began)
  }
})

/** Load balancers ask often, and a refusal would take the gateway out of service. */
const isProbe = (route: Route<Endpoint>): boolean =>
  route.kind === "endpoint" && ["heartbeat", "lbheartbeat"].includes(route.endpoint.name)

/** Steps 5 to 10, of a request to an endpoint. */
const runOperation = Effect.fnUntraced(function* (
  { origin, request, rootUrl, settings, trace }: RequestContext,
  { endpoint, params, query }: Matched
) {
  if (request.method === "OPTIONS") {
    return yield* options(request, endpoint, settings)
  }
  const operation = operationOf(endpoint, request.method)
  if (operation === undefined || !isOffered(endpoint, request.method, settings)) {
    return yield* refuseMethod(endpoint, settings)
  }
  yield* checked(checkMedia(request, operation))
  const identified = yield* identify(request, operation)
  const { caller } = identified
  trace.caller = caller
  if (caller !== undefined) yield* (yield* RequestRates).ofUser(caller.user)
  if (request.refusal !== undefined) return yield* request.refusal
  yield* checked(checkUser(request, identified))
  yield* authorise(identified, operation, params["channel"])
  const allowed = originsOf(endpoint, settings.corsOrigins)
  yield* checked(checkOrigin(request, operation, origin, allowed))
  const isAbout: Call["isAbout"] = (person) => {
    trace.person = person
  }
  const { name } = endpoint
  const user = caller
  const call: Call = { request, caller, user, endpoint: name, params, query, rootUrl, isAbout }
  const errors: Array<ErrorDetail> = []
  const input = operation.read && (yield* operation.read(call, errors))
  if (errors.length > 0) return yield* refuseInvalid(errors)
  const response = yield* operation.run(input, call)
  return yield* withChallenge(response, identified, operation)
})

/** Step 5: the response to OPTIONS. */
const options = (
  request: ApiRequest,
  endpoint: Endpoint,
  settings: GatewaySettings["Service"]
): Effect.Effect<ApiResponse, Refused> => {
  const methods = methodsOf(endpoint, settings)
  const errors = preflightErrors(request, originsOf(endpoint, settings.corsOrigins), methods)
  return errors.length > 0
    ? refuseInvalid(errors)
    : Effect.succeed(ok(null, preflightHeaders(request, endpoint, methods)))
}

/** Rate-limited: during an outage every request fails. */
const logIdentityUnavailable = makeRateLimitedLog("identity unavailable", Effect.logError)
const logStorageUnavailable = makeRateLimitedLog("storage unavailable", Effect.logError)

const fromIdentityUnavailable = (err: IdentityUnavailable) =>
  Effect.as(logIdentityUnavailable({ err }), errorResponse("unavailable"))

const fromTooManyFailures = ({ waitMillis }: TooManyFailures) =>
  Effect.succeed(errorResponse("too-many-wrong-credentials", retryAfter(waitMillis)))

const fromNatsUnavailable = Effect.fnUntraced(function* (error: NatsUnavailable) {
  if (error.reason._tag === "NoRoom") {
    yield* (yield* Space).refused(error.reason.stream)
    return errorResponse("no-room")
  }
  yield* logStorageUnavailable({ err: error })
  return { ...errorResponse("unavailable"), aborts: true as const }
})

/** The 500 for a defect. An interrupted request stays interrupted. */
const fromCause = (cause: Cause.Cause<never>, { rootUrl, settings }: RequestContext) => {
  if (Cause.hasInterruptsOnly(cause)) return Effect.interrupt
  const info = docsUrl(settings, rootUrl)
  const response = { ...errorResponse("internal", { info }), aborts: true as const }
  return Effect.as(Effect.logError("request failed", cause), response)
}
