// The metrics port: a small HTTP server of every process, whatever its roles, for metrics, and for
// the two heartbeats of the API without its prefix. Anybody who reaches it may call without
// credentials, so each connection gets one response and ends after a fixed time, and their number
// is bounded.
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import { type AddressInfo, isIP, type Socket } from "node:net"
import { hostname } from "node:os"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { siteSuffixes } from "#basics/public-name.ts"
import { Settings } from "#config"
import type { Processes } from "#nats/connection/processes.ts"
import type { Backlog } from "#nats/watch/backlog.ts"
import type { Space } from "#nats/watch/space.ts"
import { addressText, isOff, type ListenAddress, listenAddressOf } from "#settings/addresses.ts"
import { watchProcess } from "#telemetry/process-metrics.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { Health } from "./health.ts"
import { metricsText, textFormat } from "./metrics-text.ts"

/** Used if the setting is unset. Another process of this machine may have it already. */
const addressDefault: ListenAddress = { host: "127.0.0.1", port: 9998 }

/** The port cannot be opened: it is in use, or the address is none of this machine. */
export class MetricsPortError extends Data.TaggedError("MetricsPortError")<{
  readonly cause: Error
}> {}

/** Where this process shows its metrics: `host:port`. Undefined: nowhere. */
export class MetricsPort extends Context.Service<
  MetricsPort,
  { readonly address: string | undefined }
>()("bellcast/monitoring/MetricsPort") {
  static readonly layer = Layer.effect(
    MetricsPort,
    Effect.gen(function* () {
      const { metricsAddress } = yield* Settings
      if (Option.isSome(metricsAddress) && isOff(metricsAddress.value))
        return MetricsPort.of({ address: undefined })
      return MetricsPort.of({ address: yield* serve(metricsAddress) })
    })
  )
}

/** Serves for as long as the scope is open. Succeeds with the address. */
const serve = Effect.fnUntraced(function* (setting: Option.Option<string>) {
  const { retryAfterSeconds, roles } = yield* Settings
  yield* Effect.acquireRelease(
    Effect.sync(() => watchProcess(roles)),
    ({ stop }) => Effect.sync(stop)
  )
  const run = Effect.runForkWith(yield* Effect.context<Shown>())
  const warn = makeRateLimitedLog("the metrics port: a request or connection failed")
  const configured = Option.map(setting, (text) => listenAddressOf(text)?.host)
  const names = [hostname(), ...Option.toArray(configured)].filter((name) => name !== undefined)
  const server = makeServer(names, (method, target, done) => {
    const page = pageOf(method, target, { retryAfterSeconds }).pipe(
      Effect.catchCause((cause) => Effect.as(warn({ err: String(cause) }), broken))
    )
    run(Effect.map(page, done))
  })
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      server.close()
      server.closeAllConnections()
    })
  )
  const address = Option.match(setting, {
    onNone: () => listenAnywhere(server),
    onSome: (text) => listen(server, listenAddressOf(text)!)
  })
  const bound = yield* address
  // Without a listener an error such as EMFILE would end the process.
  server.on("error", (cause) => run(warn({ err: cause.message })))
  return bound
})

/** Listens at the default address or, if that is taken, at a free port. */
const listenAnywhere = (server: Server) =>
  listen(server, addressDefault).pipe(
    Effect.catch(({ cause }) =>
      listen(server, { ...addressDefault, port: 0 }).pipe(
        Effect.tap((address) =>
          Effect.logWarning(
            "the default metrics port cannot be used: BELLCAST_METRICS_ADDRESS sets another one",
            { reason: cause.message, metrics: address }
          )
        )
      )
    )
  )

const listen = (server: Server, address: ListenAddress): Effect.Effect<string, MetricsPortError> =>
  Effect.callback((resume) => {
    const fail = (cause: Error) => resume(Effect.fail(new MetricsPortError({ cause })))
    server.once("error", fail).listen(address, () => {
      server.off("error", fail)
      const bound = server.address() as AddressInfo
      resume(Effect.succeed(addressText(bound.address, bound.port)))
    })
  })

interface Page {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
}

/** The services that the pages read. */
type Shown = Backlog | Health | Processes | Space

interface PageOptions {
  readonly retryAfterSeconds: number
}

type Show = (options: PageOptions) => Effect.Effect<Page, never, Shown>

const json = { "Content-Type": "application/json; charset=UTF-8" }
const plain = { "Content-Type": "text/plain; charset=utf-8" }

/** The page of a heartbeat: 200, or 503 when a check fails. */
const heartbeatPage = (
  isWell: boolean,
  view: object,
  { retryAfterSeconds }: PageOptions
): Page => ({
  status: isWell ? 200 : 503,
  headers: isWell ? json : { ...json, "Retry-After": String(retryAfterSeconds) },
  text: JSON.stringify(view)
})

const pages: Readonly<Record<string, Show>> = {
  "/metrics": () =>
    Effect.map(metricsText("operator"), (text) => ({
      status: 200,
      headers: { "Content-Type": textFormat },
      text
    })),
  "/__heartbeat__": Effect.fnUntraced(function* (options) {
    const view = yield* (yield* Health).view
    return heartbeatPage(Object.values(view).every(Boolean), view, options)
  }),
  "/__lbheartbeat__": Effect.fnUntraced(function* (options) {
    return heartbeatPage(!(yield* Health).isLeaving(), {}, options)
  })
}

const paths = Object.keys(pages).join(", ")
const methods = ["GET", "HEAD"]

const unknownPath: Page = { status: 404, headers: plain, text: `Here are ${paths}.\n` }
const wrongMethod: Page = {
  status: 405,
  headers: { ...plain, Allow: methods.join(", ") },
  text: `Use ${methods.join(" or ")}.\n`
}
const broken: Page = { status: 500, headers: {}, text: "" }

/** The page of a request. `target` may have a query string, which changes nothing. */
const pageOf = (
  method: string,
  target: string,
  options: PageOptions
): Effect.Effect<Page, never, Shown> => {
  const [path = ""] = target.split("?", 1)
  const show = Object.hasOwn(pages, path) ? pages[path] : undefined
  if (show === undefined) return Effect.succeed(unknownPath)
  return methods.includes(method) ? show(options) : Effect.succeed(wrongMethod)
}

// An import would load the undici of Node.js, too: 40 ms of CPU time at each start.
const { createServer } = process.getBuiltinModule("node:http")

/** Probes and Prometheus use one connection each. */
const connectionsMax = 64
/** Longer than a heartbeat may take (60 s), with the time that its request and response take. */
const connectionMillisMax = 75_000
/** How long a request may take to arrive. */
const requestMillis = 5_000
/** How often Node.js checks that time. */
const checkMillis = 1_000
const headerBytesMax = 8_192

/**
 * A server that does not listen yet. `respond` computes the page of a request and calls back; it
 * never fails. `names`: hosts by which it may be called, beside those of `isOwnHost`.
 */
const makeServer = (
  names: ReadonlyArray<string>,
  respond: (method: string, target: string, done: (page: Page) => void) => void
): Server => {
  const served = new WeakSet<Socket>()
  const server = createServer(
    {
      headersTimeout: requestMillis,
      requestTimeout: requestMillis,
      connectionsCheckingInterval: checkMillis,
      maxHeaderSize: headerBytesMax,
      requireHostHeader: false
    },
    (request, response) => {
      const { headers, method = "", socket, url = "" } = request
      if (served.has(socket)) return void socket.pause()
      served.add(socket)
      if (!isForEverybody(url) && !isOwnHost(headers.host, names))
        return send(request, response, foreignHost)
      // The body, if any, is neither read nor kept: the connection ends with the response.
      respond(method, url, (page) => send(request, response, page))
    }
  )
  boundConnections(server)
  return server
}

/**
 * Destroys connections that are too old and, when there are too many, the oldest: clients that hold
 * connections then hinder no probe.
 */
const boundConnections = (server: Server): void => {
  const open = new Set<Socket>()
  server.on("connection", (socket: Socket) => {
    const [oldest] = open
    if (open.size >= connectionsMax) oldest?.destroy()
    open.add(socket)
    const timer = setTimeout(() => socket.destroy(), connectionMillisMax)
    socket.once("close", () => {
      clearTimeout(timer)
      open.delete(socket)
    })
  })
}

const send = (request: IncomingMessage, response: ServerResponse, page: Page): void => {
  const { headers, status, text } = page
  const length = Buffer.byteLength(text)
  response.writeHead(status, { ...headers, "Content-Length": length, Connection: "close" })
  response.end(request.method === "HEAD" ? undefined : text)
}

const foreignHost: Page = {
  status: 403,
  headers: { "Content-Type": "text/plain; charset=utf-8" },
  text:
    "This name may be that of a foreign site. Use the address, or set " +
    "BELLCAST_METRICS_ADDRESS to this name and the port.\n"
}

/** Load balancers may name any Host, and it says nothing. */
const isForEverybody = (target: string): boolean => target === "/__lbheartbeat__"

/** Names that no site on the internet can have; `svc` is that of Kubernetes. */
const ownSuffixes = [...siteSuffixes, "svc"]

/**
 * Whether a Host header is ours: none, an address, a name without a dot, a name of a local network
 * or cluster, or one of `names`. With or without a port.
 */
export const isOwnHost = (header: string | undefined, names: ReadonlyArray<string>): boolean => {
  const [, ipv6, name = ""] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d*)?$/.exec(header ?? "") ?? ["", "?"]
  if (ipv6 !== undefined) return isIP(ipv6) === 6
  const host = name.toLowerCase().replace(/\.$/, "")
  return (
    isIP(host) === 4 ||
    !host.includes(".") ||
    ownSuffixes.some((suffix) => host.endsWith(`.${suffix}`)) ||
    names.some((each) => each.toLowerCase() === host)
  )
}
