// The composition root: reads settings and secrets, connects to NATS (starts an embedded server if
// none is set), and runs the stages of this process.
import * as NodeRuntime from "@effect/platform-node-shared/NodeRuntime"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { JoinedChannels } from "#broadcasts/joined.ts"
import { BroadcastWatch } from "#broadcasts/watch.ts"
import type { Children } from "#children/children.ts"
import { Group } from "#children/group.ts"
import { nameOf, placeOf } from "#children/messages.ts"
import { parentLayer } from "#children/parent.ts"
import { ServiceClock } from "#clock/clocks.ts"
import { logLevel, type Role, Settings } from "#config"
import { deliveryLayer } from "#delivery/layer.ts"
import { VapidKeys } from "#delivery/push/vapid.ts"
import { historyDaysMin } from "#domain/history.ts"
import type { WriteRule } from "#domain/publisher.ts"
import type { EmbeddedServer } from "#embedded/server.ts"
import { revivedLayer, startEmbedded } from "#embedded/server.ts"
import { fanoutLayer } from "#fanout/planner.ts"
import { ChannelNames } from "#gateway/channels/names.ts"
import { versionPrefix } from "#gateway/http/version.ts"
import { RequestRates } from "#gateway/quotas.ts"
import { ApiPort, gatewayLayer } from "#gateway/serve.ts"
import { GatewaySettings } from "#gateway/settings.ts"
import { VapidPublicKeys } from "#gateway/vapid-public-keys.ts"
import { HistoryDays } from "#history/place.ts"
import { Identity } from "#identity/identity.ts"
import { hmacFor, principalNames, pseudonyms } from "#identity/principals.ts"
import { cachesLayer, garbageLayer } from "#memory/upkeep.ts"
import { Health, type HealthOptions } from "#monitoring/health.ts"
import { MetricsPort } from "#monitoring/port.ts"
import { endAtStandstill } from "#monitoring/standstill.ts"
import { refuseTightConnection, refuseTightLimits } from "#nats/admin/limits.ts"
import { refuseMissingBuckets, warnOfPause } from "#nats/admin/maintenance.ts"
import { provision } from "#nats/admin/provision.ts"
import { bucketsToMake, refuseFewerCopies, refuseOtherCopies } from "#nats/admin/start-checks.ts"
import { whenReady } from "#nats/connection/again.ts"
import { noRole, Processes } from "#nats/connection/processes.ts"
import { natsLayer } from "#nats/layer.ts"
import { ServerHealth } from "#nats/watch/server-health.ts"
import { followServerTime } from "#nats/watch/server-time.ts"
import { fullnessLayer, Space } from "#nats/watch/space.ts"
import { copiesLayer, StreamWatch } from "#nats/watch/streams.ts"
import { Upkeep } from "#nats/watch/upkeep.ts"
import { erasedListLayer } from "#projection/erased-list.ts"
import { PseudonymOf } from "#projection/letters.ts"
import { projectionLayer } from "#projection/projector.ts"
import { ensureForm } from "#rebuild/start.ts"
import { adopt, adoptUseridSecret, checkKeysInUse } from "#secrets/adoption.ts"
import { usableKeys } from "#secrets/key-set.ts"
import { Secrets, warnOfExample } from "#secrets/secrets.ts"
import { natsTlsFiles } from "#settings/addresses.ts"
import { sourceLayer } from "#settings/source.ts"
import { streams } from "#streams/index.ts"
import { tallyLayer } from "#tally/tally.ts"
import { loggerLayer } from "#telemetry/logger.ts"
import { announced, type Ready } from "./announce.ts"
import { checkSettings, logStartFailure } from "./failed-start.ts"
import { childrenOf } from "./other-processes.ts"
import { endAtOtherForm, endWhenReplaced, watchStop, watchUncaught } from "./stop.ts"

/** The place of this process among those that deliver, where another one has started it. */
const place = placeOf(process.argv.slice(2))

/** The name of this process in lines of the log; undefined: they have none. */
const name = nameOf(place)

const logger = Layer.unwrap(
  Effect.map(
    Effect.orElseSucceed(logLevel, () => "info" as const),
    (level) => loggerLayer(level, process.stdout.isTTY, name)
  )
)
const logging = logger.pipe(Layer.provideMerge(sourceLayer))
const metUncaught = watchUncaught(logging)
const stop = watchStop(metUncaught)
endAtStandstill(logging, name)

/** The time of every stage, after the first reading of the server's. */
const clock = new ServiceClock()

/** The stage of a role. It runs for as long as its layer lives. */
const stage = (role: Role, secrets: Secrets["Service"], historyDays: number) => {
  switch (role) {
    case "gateway":
      return gatewayLayer.pipe(
        Layer.provide(Identity.layer),
        Layer.provide([
          BroadcastWatch.layer,
          ChannelNames.layer,
          JoinedChannels.layer,
          RequestRates.layer
        ]),
        Layer.provide(
          Layer.succeed(VapidPublicKeys, {
            current: secrets.vapidPublicKey,
            usable: usableKeys(secrets.vapidKeys)
          })
        )
      )
    case "projection":
      return Layer.merge(projectionLayer, erasedListLayer).pipe(
        Layer.provide(Layer.succeed(HistoryDays, { usual: historyDays, shortest: historyDaysMin })),
        Layer.provide(
          Layer.succeed(PseudonymOf, pseudonyms(Redacted.value(secrets.useridHmacSecret)))
        )
      )
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

/** The values from which the layers of this process are made. */
interface Start extends Ready {
  readonly secrets: Secrets["Service"]
  /** The nats-server of this process; none: BELLCAST_NATS_URL names another one. */
  readonly natsServer: Option.Option<EmbeddedServer>
  readonly health: HealthOptions
  /** The other processes that deliver; undefined: this process is one of them. */
  readonly children: Children | undefined
}

/** Checks the secrets against NATS. A gateway also records them, as it offers them to users. */
const secretsChecked = ({ secrets, settings }: Start) => {
  const offers = settings.roles.includes("gateway")
  const usesKeys = offers || settings.roles.includes("delivery")
  const recorded = Effect.andThen(
    adoptUseridSecret(secrets.useridHmacSecret),
    adopt(secrets.vapidKeys)
  )
  return Effect.andThen(
    usesKeys ? checkKeysInUse(secrets.vapidKeys) : Effect.void,
    offers ? recorded : Effect.void
  ).pipe(Effect.andThen(warnOfExample(secrets.vapidSubject)))
}

const waitMillisOf = ({ natsWaitSeconds }: Settings["Service"]) => natsWaitSeconds * 1_000

/** The limits of streams that the operator set. */
const bytesMaxOf = ({ logBytesMax, workBytesMax }: Settings["Service"]) => {
  const limits = { [streams.log.name]: logBytesMax, [streams.work.name]: workBytesMax }
  return Object.fromEntries(
    Object.entries(limits).flatMap(([name, limit]) =>
      Option.isSome(limit) ? [[name, limit.value] as const] : []
    )
  )
}

/** The needs of a process that is not ready, as the buckets are made again. */
const whileMaking = (natsServer: Start["natsServer"]) =>
  Layer.build(
    Layer.merge(
      MetricsPort.layer.pipe(Layer.provide(Health.waiting)),
      // The disk may get full meanwhile: the log says so, and an embedded nats-server goes on.
      revivedLayer(natsServer)
    ).pipe(
      Layer.provide(ServerHealth.layer),
      Layer.provide(Space.layer),
      Layer.provide(StreamWatch.layer)
    )
  )

/** Buckets of an earlier form are made again here, however long that takes. */
const ofThisForm = ({ natsServer, settings }: Start) =>
  refuseTightLimits.pipe(
    Effect.andThen(refuseTightConnection(settings.roles)),
    Effect.andThen(bucketsToMake),
    (found) => whenReady("streams and buckets", found, waitMillisOf(settings)),
    Effect.andThen(ensureForm(settings.roles, whileMaking(natsServer)))
  )

/** Makes the streams and buckets. Fails if a bucket was lost, which only a rebuild can mend. */
const provisioned = ({ settings }: Start) =>
  refuseMissingBuckets.pipe(
    Effect.andThen(refuseOtherCopies),
    Effect.andThen(refuseFewerCopies(settings.replicas)),
    Effect.andThen(
      provision(
        Option.getOrElse(settings.replicas, () => 1),
        bytesMaxOf(settings)
      )
    ),
    Effect.andThen(warnOfPause),
    (made) => whenReady("streams and buckets", made, waitMillisOf(settings))
  )

const announcedEarly = Effect.flatMap(Processes, ({ announce }) => announce([noRole]))

/** The connection of this process to NATS. */
const natsOf = ({ natsUrl, secrets, settings }: Start) => {
  const messageId = hmacFor(Redacted.value(secrets.useridHmacSecret), "bellcast message id")
  return natsLayer({
    url: natsUrl,
    credsFile: Option.getOrUndefined(settings.natsCreds),
    tls: natsTlsFiles(settings.natsTls),
    inboxPrefix: settings.natsInboxPrefix,
    name: `bellcast ${settings.roles.join(",")}`,
    waitMillis: waitMillisOf(settings),
    messageIdOf: (text) => messageId(text, "base64url")
  })
}

/** The settings as the stages read them: with the secret, also where the data folder has it. */
const settingsOfStages = ({ secrets, settings }: Start): Settings["Service"] => {
  // Settings may name users by their mail addresses, whose ids are HMACs.
  const nameOf = principalNames(Redacted.value(secrets.useridHmacSecret))
  const withName = (rule: WriteRule) => ({ ...rule, principal: nameOf(rule.principal) })
  return {
    ...settings,
    useridHmacSecret: Option.some(secrets.useridHmacSecret),
    channelWritePrincipals: settings.channelWritePrincipals.map(withName),
    channelRegisterPrincipals: settings.channelRegisterPrincipals.map(withName),
    userWritePrincipals: settings.userWritePrincipals.map(nameOf),
    operatorPrincipals: settings.operatorPrincipals.map(nameOf)
  }
}

/** The bounds that this process divides with the others that deliver. */
const groupOf = ({ children }: Start): Layer.Layer<never> => {
  if (children !== undefined) return Layer.succeed(Group, children.group)
  return place === undefined ? Layer.empty : parentLayer(place)
}

/** The stages, and what an operator sees of them, from the last layer to the first. */
const working = (start: Start) => {
  const { children, natsServer, secrets, settings } = start
  const stages = settings.roles.map((role) => stage(role, secrets, settings.historyDays))
  return Layer.effectDiscard(announced(start)).pipe(
    // A start needs memory that the service does not: given back before it is ready.
    Layer.provide(garbageLayer),
    // Told as the stages of this process begin to drain, so that all drain together.
    Layer.provide(Layer.effectDiscard(Effect.addFinalizer(() => children?.told ?? Effect.void))),
    // The work of this process.
    Layer.provideMerge(Layer.mergeAll(stages[0]!, ...stages.slice(1))),
    // The other processes that deliver. Their ends are awaited once the stages have drained.
    Layer.provide(Layer.effectDiscard(children?.supervised ?? Effect.void)),
    // Below the stages: the port opens first and shows metrics until the stages have drained.
    Layer.provideMerge(Layer.merge(MetricsPort.layer, ApiPort.layer)),
    // A full disk must not end an embedded nats-server for good.
    Layer.provide(revivedLayer(natsServer))
  )
}

/**
 * The service, from the last layer to the first: each is made once all below it are there, and
 * closed before them.
 */
const running = (start: Start) => {
  const { health, settings } = start
  return working(start).pipe(
    // Heartbeats ask it, on the metrics port and in the API.
    Layer.provide(Health.layer(health)),
    // NATS may answer reads and store nothing any more.
    Layer.provide(ServerHealth.layer),
    // No stage works with secrets that this NATS was not used with before.
    Layer.provide(
      Layer.effectDiscard(whenReady("secrets", secretsChecked(start), waitMillisOf(settings)))
    ),
    // Operators learn of full streams, and of copies that are not current.
    Layer.provide([fullnessLayer, copiesLayer]),
    // No stage works before the first reading of the server's clock.
    Layer.provide(followServerTime(clock)),
    // Requests are refused before a stream is full.
    Layer.provide(Space.layer),
    // What somebody deletes, pauses or changes while the service runs is repaired.
    Layer.provide(Upkeep.layer),
    // A process must not go on with another LOG or WORK.
    Layer.provide(Layer.effectDiscard(Effect.andThen(endWhenReplaced, endAtOtherForm))),
    // Asks NATS how all streams are, once for all of the above.
    Layer.provide(StreamWatch.layer),
    // Everything above reads and writes streams, consumers and buckets.
    Layer.provide(Layer.effectDiscard(Effect.andThen(ofThisForm(start), provisioned(start)))),
    // Others write what this version reads before it reads anything, and until it has drained.
    Layer.provide(Layer.effectDiscard(announcedEarly)),
    // The one door to NATS.
    Layer.provide(natsOf(start)),
    // The caches of all stages share one bound.
    Layer.provide(cachesLayer),
    // The bounds of one process hold for all that deliver together.
    Layer.provide(groupOf(start)),
    Layer.provide(Layer.succeed(Settings, settingsOfStages(start)))
  )
}

const service = Layer.unwrap(
  Effect.gen(function* () {
    const settings = yield* Settings
    if (settings.roles.includes("gateway")) stop.waitMillis = settings.shutdownWaitSeconds * 1_000
    const secrets = yield* Secrets
    const natsServer = Option.isSome(settings.natsUrl)
      ? Option.none()
      : Option.some(yield* startEmbedded(settings.dataDir, stop.isRequested))
    const natsUrl = Option.getOrElse(settings.natsUrl, () => Option.getOrThrow(natsServer).url)
    const gateway = yield* GatewaySettings
    const apiPath = `/${versionPrefix}/`
    const { heartbeatTimeoutSeconds: timeoutSeconds, readonly } = gateway
    const parent = { settings, secrets, natsUrl, isStopRequested: stop.isRequested }
    const children = place === undefined ? yield* childrenOf(parent) : undefined
    return running({
      settings,
      secrets,
      apiPath,
      natsUrl,
      natsServer,
      health: { readonly, timeoutSeconds },
      children,
      wait: stop.wait
    })
  })
).pipe(
  Layer.provide(Secrets.layer),
  Layer.provide(GatewaySettings.layer),
  Layer.provideMerge(Settings.layer),
  Layer.provide(Layer.effectDiscard(checkSettings))
)

// A reader of the output may leave (`| head`): that must not end the service.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {})

Layer.launch(service).pipe(
  Effect.tapCause((cause) =>
    Cause.hasInterruptsOnly(cause) ? Effect.void : logStartFailure(cause)
  ),
  Effect.provide(logging),
  Effect.provideService(Clock.Clock, clock),
  NodeRuntime.runMain({
    disableErrorReporting: true,
    // A stop by a signal is no failure: without this the exit code would be 130.
    teardown: (exit, onExit) =>
      onExit(
        metUncaught() || (Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause)) ? 1 : 0
      )
  })
)
