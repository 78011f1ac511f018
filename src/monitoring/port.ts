// The metrics port: a small HTTP server of every process, whatever its roles, for metrics and
// probes.
import type { Server } from "node:http"
import type { AddressInfo } from "node:net"
import { hostname } from "node:os"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { Settings } from "#config"
import { addressText, isOff, type ListenAddress, listenAddressOf } from "#settings/addresses.ts"
import { watchProcess } from "#telemetry/process-metrics.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { type Page, pageOf, type Shown } from "./pages.ts"
import { makeServer } from "./server.ts"

/** Used if the setting is unset. Another process of this machine may have it already. */
const addressDefault: ListenAddress = { host: "127.0.0.1", port: 9998 }

/** The port cannot be opened: it is in use, or the address is none of this machine. */
export class MetricsPortError extends Data.TaggedError("MetricsPortError")<{
  readonly cause: Error
}> {}

const listen = (server: Server, address: ListenAddress): Effect.Effect<string, MetricsPortError> =>
  Effect.callback((resume) => {
    const fail = (cause: Error) => resume(Effect.fail(new MetricsPortError({ cause })))
    server.once("error", fail).listen(address, () => {
      server.off("error", fail)
      const bound = server.address() as AddressInfo
      resume(Effect.succeed(addressText(bound.address, bound.port)))
    })
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

const broken: Page = { status: 500, headers: {}, text: "" }

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
