// The composition root: settings, secrets, NATS (an embedded server unless one is named), then the stages this process runs.
import { join, relative } from "node:path"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Cause, Effect, Exit, Layer, Option } from "effect"
import { logLevel, type Role, Settings } from "#config"
import { deliveryLayer } from "#delivery/layer.ts"
import { VapidKeys } from "#delivery/push/vapid.ts"
import { announceApi } from "#embedded/api-address.ts"
import { folderAt } from "#embedded/folder.ts"
import { embeddedServer } from "#embedded/server.ts"
import { fanoutLayer } from "#fanout/planner.ts"
import { addressOf, versionOf } from "#gateway/http/links.ts"
import { NewUsers } from "#gateway/quotas/new-users.ts"
import { gatewayLayer } from "#gateway/serve.ts"
import { Health } from "#gateway/service/health.ts"
import { GatewaySettings } from "#gateway/settings.ts"
import { VapidPublicKeys } from "#gateway/subscriptions/vapid-public-keys.ts"
import { Identity } from "#identity/identity.ts"
import { fullnessLayer } from "#nats/admin/fullness.ts"
import { refuseMissingBuckets, warnOfPause } from "#nats/admin/maintenance.ts"
import { provision } from "#nats/admin/provision.ts"
import { Space } from "#nats/admin/space.ts"
import { hostsOf } from "#nats/connection/connection.ts"
import { natsLayer } from "#nats/layer.ts"
import { projectionLayer } from "#projection/projector.ts"
import { adopt, checkKeysInUse } from "#secrets/in-use.ts"
import { usableKeys } from "#secrets/key-set.ts"
import { Secrets } from "#secrets/secrets.ts"
import { adoptUseridSecret } from "#secrets/userid-secret.ts"
import { natsTlsFiles } from "#settings/nats-url.ts"
import { sourceLayer } from "#settings/source.ts"
import { streams } from "#streams/index.ts"
import { tallyLayer } from "#tally/tally.ts"
import { loggerLayer } from "#telemetry/logger.ts"
import { checkSettings } from "./check-settings.ts"
import { story } from "./startup-banner.ts"
import { watchUncaught } from "./uncaught.ts"

/** The stages by role; each runs for as long as its layer lives. */
const stage = (role: Role, secrets: Secrets["Service"]) => {
  switch (role) {
    case "gateway":
      return gatewayLayer.pipe(
        Layer.provide(Identity.layer),
        Layer.provide(Health.layer),
        Layer.provide(NewUsers.layer),
        Layer.provide(
          Layer.succeed(VapidPublicKeys, {
            current: secrets.vapidPublicKey,
            usable: usableKeys(secrets.vapidKeys)
          })
        )
      )
    case "projection":
      return projectionLayer
    case "fanout":
      return fanoutLayer
    case "tally":
      return tallyLayer
    case "delivery":
      return deliveryLayer.pipe(
        Layer.provide(
          Layer.succeed(VapidKeys, { keys: secrets.vapidKeys, subject: secrets.vapidSubject! })
        )
      )
  }
}

/** Whether a newcomer's listener and publisher would be let in. */
const isForTrying = ({
  allowLoopbackEndpoints,
  channelWritePrincipals
}: Settings["Service"]): boolean =>
  allowLoopbackEndpoints && channelWritePrincipals.includes("system.Authenticated")

/** The file that holds the address of the embedded server with its login. */
const natsUrlFile = (dataDir: string): string => {
  const file = folderAt(join(dataDir, "nats")).url
  const fromHere = relative(process.cwd(), file)
  return fromHere.startsWith("..") ? file : fromHere
}

/** The URL of a server of our own. Without it there is nothing to serve: when it ends before us, so do we. */
const embedded = Effect.fnUntraced(function* (dataDir: string) {
  const server = yield* embeddedServer(dataDir)
  yield* Effect.promise(() => server.exited).pipe(
    Effect.andThen((code) => Effect.logFatal("the embedded nats-server has ended", { code })),
    Effect.andThen(Effect.sync(() => process.exit(1))),
    Effect.forkScoped
  )
  return server.url
})

const service = Layer.unwrap(
  Effect.gen(function* () {
    const settings = yield* Settings
    const secrets = yield* Secrets
    const url = Option.isSome(settings.natsUrl)
      ? settings.natsUrl.value
      : yield* embedded(settings.dataDir)
    const stages = settings.roles.map((role) => stage(role, secrets))
    const root = `http://${addressOf(settings)}/${versionOf(yield* GatewaySettings)}/`
    const offers = settings.roles.includes("gateway")
    const checks =
      offers || settings.roles.includes("delivery")
        ? checkKeysInUse(secrets.vapidKeys)
        : Effect.void
    const adopted = Effect.andThen(
      adoptUseridSecret(secrets.useridHmacSecret),
      adopt(secrets.vapidKeys)
    )
    const secretsChecked = Effect.andThen(checks, offers ? adopted : Effect.void)
    const api =
      offers && Option.isNone(settings.natsUrl)
        ? announceApi(folderAt(join(settings.dataDir, "nats")), root)
        : Effect.void
    const ready = Layer.effectDiscard(
      Effect.andThen(
        api,
        Effect.acquireRelease(
          Effect.sync(() => {
            if (Option.isNone(settings.natsUrl))
              process.stdout.write(
                story({
                  url: root,
                  natsHost: hostsOf(url),
                  natsUrlFile: natsUrlFile(settings.dataDir),
                  vapidPublicKey: secrets.vapidPublicKey,
                  isForTrying: isForTrying(settings)
                })
              )
          }).pipe(
            Effect.andThen(
              Effect.logInfo("ready", { roles: settings.roles.join(","), nats: hostsOf(url) })
            )
          ),
          () => Effect.logInfo("stopping")
        )
      )
    )
    return ready.pipe(
      Layer.provideMerge(Layer.mergeAll(stages[0]!, ...stages.slice(1))),
      Layer.provide(Layer.effectDiscard(secretsChecked)),
      Layer.provide(fullnessLayer),
      Layer.provide(Space.layer),
      Layer.provide(
        Layer.effectDiscard(
          refuseMissingBuckets.pipe(
            Effect.andThen(
              provision(settings.replicas, {
                [streams.log.name]: settings.logBytesMax,
                [streams.work.name]: settings.workBytesMax
              })
            ),
            Effect.andThen(warnOfPause)
          )
        )
      ),
      Layer.provide(
        natsLayer({
          url,
          credsFile: Option.getOrUndefined(settings.natsCreds),
          tls: natsTlsFiles(settings.natsTls),
          name: `bellcast ${settings.roles.join(",")}`
        })
      ),
      // From here on the secret is known, wherever it came from.
      Layer.provide(
        Layer.succeed(Settings, {
          ...settings,
          useridHmacSecret: Option.some(secrets.useridHmacSecret)
        })
      )
    )
  })
).pipe(
  Layer.provide(Secrets.layer),
  Layer.provide(GatewaySettings.layer),
  Layer.provideMerge(Settings.layer),
  Layer.provide(Layer.effectDiscard(checkSettings))
)

const logger = Layer.unwrap(
  Effect.map(
    Effect.orElseSucceed(logLevel, () => "info" as const),
    (level) => loggerLayer(level, process.stdout.isTTY)
  )
)

/** Whoever reads what we print may leave (`| head`): that ends no service. */
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {})

/** Pushes in hand end within their own time-outs; but nothing may keep a process that was told to stop for longer. */
const stopMillisMax = 25_000
for (const signal of ["SIGTERM", "SIGINT"] as const)
  process.once(signal, () => setTimeout(() => process.exit(1), stopMillisMax).unref())

const operatorFaults = [
  "SettingsError",
  "SecretsFault",
  "NatsServerMissing",
  "EmbeddedServerFailed",
  "BucketsMissing"
]

/** What an operator can put right is told in words; a fault of ours with its stack. */
const tell = (cause: Cause.Cause<unknown>) => {
  const error = Cause.squash(cause) as {
    readonly _tag?: string
    readonly message?: string
    readonly operation?: string
    readonly cause?: Error
  }
  if (operatorFaults.includes(error._tag ?? ""))
    return Effect.logFatal(`cannot start. ${error.message}`)
  if (error._tag === "ServeError")
    return Effect.logFatal(
      `cannot start. HTTP cannot be served: ${error.cause?.message} (BELLCAST_HOST, BELLCAST_PORT)`
    )
  if (error._tag === "NatsUnavailable")
    return Effect.logFatal(
      `cannot start. NATS cannot be used (${error.operation}): ${error.cause?.message} (BELLCAST_NATS_URL)`
    )
  return Effect.logFatal("cannot start", cause)
}

const logging = logger.pipe(Layer.provideMerge(sourceLayer))
const metUncaught = watchUncaught(logging)

Layer.launch(service).pipe(
  Effect.tapCause((cause) => (Cause.hasInterruptsOnly(cause) ? Effect.void : tell(cause))),
  Effect.provide(logging),
  NodeRuntime.runMain({
    disableErrorReporting: true,
    // Being told to stop is no failure; without this the exit code would be 130.
    teardown: (exit, onExit) =>
      onExit(
        metUncaught() || (Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause)) ? 1 : 0
      )
  })
)
