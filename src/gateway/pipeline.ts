// One request from beginning to end. Many statuses depend on this order; each line names the answer that ends the request there.
//
//    1  end of service passed ............... 410   (but __lbheartbeat__)
//    2  read-only, and not a reading method . 405   (whatever the path)
//    3  path not UTF-8 ...................... 400
//    4  route ............................... 307 to the version or without slashes, 404
//    5  method .............................. 405 with Allow; OPTIONS is answered here
//    6  Accept .............................. 406, then Content-Type 415
//    7  caller .............................. 401, publisher 403
//    8  Origin, then a change from another site's page (cross-site.ts) . 400
//    9  header, query string, body together . 400 with everything that is wrong; 413
//   10  the operation ....................... 400 bad id, 403 not registered, 404, 304, 412, 409, 429, 2xx
//
// Whatever the answer, it then gets the headers of decorate.ts and one line in the log.
import { Cause, Clock, Effect, Option, Random } from "effect"
import { Settings } from "#config"
import { Identity } from "#identity/identity.ts"
import { Space } from "#nats/admin/space.ts"
import { requestAnswered } from "#telemetry/metrics.ts"
import { mayPublish } from "./channels/publishers.ts"
import { endpoints } from "./endpoints.ts"
import {
  allowedOrigin,
  foreignOrigin,
  isPreflight,
  preflightErrors,
  preflightHeaders,
  redirectPreflightHeaders
} from "./http/cors.ts"
import { crossSiteError } from "./http/cross-site.ts"
import { type ErrorDetail, errorResponse, refuse, refuseInvalid } from "./http/errors.ts"
import { docsUrl, originOf, versionOf } from "./http/links.ts"
import { acceptsJson, isJson, notAcceptable, unsupported } from "./http/media.ts"
import {
  type ApiRequest,
  type ApiResponse,
  type Call,
  ok,
  Refused,
  type Services
} from "./http/request.ts"
import { addCommonHeaders, endOfService, expiringIn } from "./http/response-headers.ts"
import { type Route, routeOf } from "./http/routing.ts"
import { type AnyOperation, type Endpoint, operationOf } from "./operation.ts"
import { GatewaySettings } from "./settings.ts"
import { summarize, type Trace } from "./summary.ts"

const reading = ["GET", "HEAD", "OPTIONS"]

/** Whether a method is offered: some can be switched off. */
const isOffered = (
  endpoint: Endpoint,
  method: string,
  settings: GatewaySettings["Service"]
): boolean => {
  const name = `${endpoint.name} ${method === "HEAD" ? "GET" : method}`
  return (
    endpoint.allow.includes(method) &&
    ((settings.enabled as Readonly<Record<string, boolean>>)[name] ?? true)
  )
}

const methodsOf = (
  endpoint: Endpoint,
  settings: GatewaySettings["Service"]
): ReadonlyArray<string> => endpoint.allow.filter((method) => isOffered(endpoint, method, settings))

/** Steps 1 to 4. */
const reach = (
  request: ApiRequest,
  route: Route,
  origin: string,
  settings: GatewaySettings["Service"],
  now: number
) => {
  const isProbe = route.kind === "endpoint" && route.endpoint.name === "lbheartbeat"
  if (Option.isSome(settings.eos) && now >= endOfService(settings.eos.value) && !isProbe)
    return refuse("endOfLife")
  if (settings.readonly && !reading.includes(request.method)) return refuse("methodNotAllowed")
  if (route.kind === "undecodable") return refuse("undecodable")
  if (route.kind === "unknown") return refuse(route.version ? "unknownVersion" : "unknownUrl")
  if (route.kind === "endpoint") return route
  if (isPreflight(request) || (route.why === "version" && request.method === "OPTIONS")) {
    const headers = isPreflight(request)
      ? redirectPreflightHeaders(request, settings.corsMaxAgeSeconds)
      : {}
    return { status: 200, headers, errno: 0 } satisfies ApiResponse
  }
  // `DELETE /subscriptions/` is a client whose id is empty: the redirect would remove every object.
  if (route.why === "slash" && request.method === "DELETE") return refuse("unknownUrl")
  const seconds =
    route.why === "version"
      ? settings.versionPrefixRedirectTtlSeconds
      : settings.trailingSlashRedirectTtlSeconds
  const location = `${origin}${route.to}`
  return ok(
    { code: 307, message: "Temporary Redirect", location },
    { Location: location, ...expiringIn(seconds, now) },
    307
  )
}

/** Step 6. */
const checkMedia = (
  request: ApiRequest,
  { negotiates, takesJson }: AnyOperation
): Refused | undefined => {
  if (negotiates && !acceptsJson(request.headers["accept"]))
    return refuseInvalid([notAcceptable], "notAcceptable")
  const concerned = takesJson === "always" || (takesJson === "withBody" && request.hasBody)
  return concerned && !isJson(request)
    ? refuseInvalid([unsupported], "unsupportedMediaType")
    : undefined
}

/** Step 7. */
const admit = Effect.fnUntraced(function* (
  request: ApiRequest,
  { access }: AnyOperation,
  channel: string,
  trace: Trace
) {
  if (access === "anyone") return undefined
  const identity = yield* Identity
  const identified = identity.identify(request.headers)
  const caller = yield* access === "guest"
    ? Effect.orElseSucceed(identified, () => undefined)
    : identified
  trace.caller = caller
  if (access === "guest") return caller
  if (caller === undefined) {
    const challenges = identity.policies.map(({ challenge }) => challenge).join(", ")
    return yield* refuse("unauthenticated", {
      headers: challenges === "" ? {} : { "WWW-Authenticate": challenges }
    })
  }
  if (access === "publisher" && !(yield* mayPublish(caller, channel)))
    return yield* refuse("forbidden")
  return caller
})

/** Step 8. */
const checkOrigin = (
  request: ApiRequest,
  operation: AnyOperation,
  ownOrigin: string,
  allowed: ReadonlyArray<string>
): Refused | undefined => {
  const { origin } = request.headers
  const isForeign = origin !== undefined && allowedOrigin(origin, allowed) === undefined
  const error =
    isForeign && operation.crossSite !== "open"
      ? foreignOrigin
      : crossSiteError(request, operation, ownOrigin, allowed)
  return error === undefined ? undefined : refuseInvalid([error])
}

const judge = Effect.fnUntraced(function* (
  request: ApiRequest,
  route: Route,
  origin: string,
  rootUrl: string,
  trace: Trace
) {
  const settings = yield* GatewaySettings
  const reached = reach(request, route, origin, settings, trace.began)
  if (reached instanceof Refused) return yield* reached
  if (!("endpoint" in reached)) return reached
  const { endpoint, params, query } = reached
  const operation = operationOf(endpoint, request.method)
  if (request.method === "OPTIONS") {
    const methods = methodsOf(endpoint, settings)
    const errors = preflightErrors(request, settings.corsOrigins, methods)
    if (errors.length > 0) return yield* refuseInvalid(errors)
    return ok(null, preflightHeaders(request, endpoint, methods, settings.corsMaxAgeSeconds))
  }
  if (operation === undefined || !isOffered(endpoint, request.method, settings)) {
    return yield* refuse("methodNotAllowed", {
      headers: { Allow: methodsOf(endpoint, settings).join(", ") }
    })
  }
  const media = checkMedia(request, operation)
  if (media !== undefined) return yield* media
  const caller = yield* admit(request, operation, params["channel"] ?? "", trace)
  const foreign = checkOrigin(request, operation, origin, settings.corsOrigins)
  if (foreign !== undefined) return yield* foreign
  const call: Call = { request, caller, params, query, rootUrl }
  const errors: Array<ErrorDetail> = []
  const input = yield* operation.read(call, errors)
  if (errors.length > 0) return yield* refuseInvalid(errors)
  return yield* operation.run(input, call, { handleRequest, endpoints })
})

/** Where clients read on after a fault of ours. */
const infoOf = (settings: GatewaySettings["Service"], rootUrl: string): string =>
  settings.errorInfoLink === "" ? docsUrl(settings, rootUrl) : settings.errorInfoLink

const refusedBy = (stream: string) => Effect.flatMap(Space, ({ refused }) => refused(stream))

/** The answer to any request. Nothing fails here: a fault of ours is a 500, of the storage a 503. */
export const handleRequest = (request: ApiRequest): Effect.Effect<ApiResponse, never, Services> =>
  Effect.gen(function* () {
    const began = yield* Clock.currentTimeMillis
    const settings = yield* GatewaySettings
    const own = yield* Settings
    const origin = originOf(own, request.headers["host"])
    const version = versionOf(settings)
    const rootUrl = `${origin}/${version}`
    const rules = {
      version,
      versionRedirect: settings.versionPrefixRedirectEnabled,
      slashRedirect: settings.trailingSlashRedirectEnabled
    }
    const route = routeOf(endpoints, request.target, rules)
    const trace: Trace = { began, caller: undefined }
    const response = yield* judge(request, route, origin, rootUrl, trace).pipe(
      Effect.catchTags({
        Refused: ({ response }) => Effect.succeed(response),
        IdentityUnavailable: (error) =>
          Effect.as(Effect.logError("identity unavailable", error), errorResponse("unavailable")),
        NatsUnavailable: (error) =>
          error.reason._tag === "NoRoom"
            ? Effect.as(refusedBy(error.reason.stream), errorResponse("noRoom"))
            : Effect.as(Effect.logError("storage unavailable", error), {
                ...errorResponse("unavailable"),
                aborts: true as const
              })
      }),
      Effect.catchCause((cause) =>
        Cause.hasInterruptsOnly(cause)
          ? Effect.interrupt
          : Effect.as(Effect.logError("request failed", cause), {
              ...errorResponse("internal", { info: infoOf(settings, rootUrl) }),
              aborts: true as const
            })
      )
    )
    const endpoint = route.kind === "endpoint" ? route.endpoint : undefined
    const now = yield* Clock.currentTimeMillis
    const random = settings.backoff > 0 ? yield* Random.next : 0
    const complete = addCommonHeaders(request, response, endpoint, {
      settings,
      retryAfterSeconds: own.retryAfterSeconds,
      rootUrl,
      now,
      random
    })
    yield* summarize(request, complete, trace, now)
    requestAnswered(request.method, endpoint?.path ?? "none", complete.status, now - began)
    return complete
  })
