// Says that the service is ready, where it is, and at the end that it stops: in the log and, beside
// an embedded server, as a text for whoever started it.
import { join, relative } from "node:path"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type Settings, urlDefault } from "#config"
import { announceApi, folderAt, textOf } from "#embedded/folder.ts"
import { ApiPort } from "#gateway/serve.ts"
import { gatewaySettings } from "#gateway/settings.ts"
import { identitySettings, kindOf, type NamedPolicy } from "#identity/settings.ts"
import { Health } from "#monitoring/health.ts"
import { MetricsPort } from "#monitoring/port.ts"
import { hostsOf } from "#nats/connection/connection.ts"
import { Processes } from "#nats/connection/processes.ts"
import { addressText, OutgoingProxy } from "#settings/addresses.ts"
import { everySetting, type Values } from "#settings/every-setting.ts"
import { Source } from "#settings/source.ts"

export interface Ready {
  readonly settings: Settings["Service"]
  readonly secrets: { readonly vapidPublicKey: string }
  /** Path of the HTTP API. */
  readonly apiPath: string
  /** Address of NATS, with the login. */
  readonly natsUrl: string
  /** Ends when the stages may stop. */
  readonly wait: Effect.Effect<void>
}

/**
 * Says that the service is ready, also to the other processes, and, at the end of the scope, that
 * it stops: first to load balancers, then, after a wait, to the stages.
 */
export const announced = Effect.fnUntraced(function* (ready: Ready) {
  const { natsUrl, apiPath, settings } = ready
  const { address: metrics } = yield* MetricsPort
  const { current: port } = yield* ApiPort
  const api = port === undefined ? undefined : addressText(settings.host, port)
  const { leave } = yield* Health
  const stopping = Effect.logInfo("stopping").pipe(
    Effect.andThen(Effect.sync(leave)),
    Effect.andThen(ready.wait)
  )
  // Withdrawn after the wait, before the stages drain: they take nothing more.
  yield* (yield* Processes).announce(settings.roles)
  yield* Effect.addFinalizer(() => stopping)
  if (Option.isNone(settings.natsUrl)) {
    const url = api === undefined ? undefined : `http://${api}${apiPath}`
    // Withdrawn before the wait: another start then waits for the end of this service.
    if (url !== undefined) yield* announceApi(natsFolder(settings.dataDir), url)
    yield* printBanner(ready, url, metrics)
  }
  const through = yield* OutgoingProxy
  const proxy = through && addressText(through.hostname, through.port)
  const fields = { roles: settings.roles.join(","), nats: hostsOf(natsUrl), api, metrics, proxy }
  yield* Effect.logInfo("ready", fields)
})

const printBanner = Effect.fnUntraced(function* (
  { natsUrl, secrets, settings }: Ready,
  url: string | undefined,
  metrics: string | undefined
) {
  const { authPolicies } = yield* everySetting(identitySettings)
  const open = openOf(settings, yield* everySetting(gatewaySettings))
  const text = startupBanner({
    url,
    metricsAddress: metrics,
    natsHost: hostsOf(natsUrl),
    natsUrlFile: natsUrlFile(settings.dataDir),
    vapidPublicKey: secrets.vapidPublicKey,
    logins: authPolicies.map(loginOf).join(", ") || "none",
    publishers: publishersOf(settings),
    open,
    hasDemo: (yield* Source).isDevelopment,
    isForTrying: isForTrying(settings, authPolicies)
  })
  process.stdout.write(text)
})

export interface Banner {
  /** Base URL of the HTTP API; undefined: this process does not serve it. */
  readonly url: string | undefined
  /** Host and port of the metrics port; undefined when it is off. */
  readonly metricsAddress: string | undefined
  /** Host and port of NATS, without the login. */
  readonly natsHost: string
  /** The file with the address and login of NATS. */
  readonly natsUrlFile: string
  readonly vapidPublicKey: string
  /** The policies, and who may publish. */
  readonly logins: string
  readonly publishers: string
  /** The parts of the service that anybody may use, or without limit. */
  readonly open: ReadonlyArray<string>
  /** Whether the service has the console as a development has it: with "Try it". */
  readonly hasDemo: boolean
  /** Whether the service would accept the commands shown. */
  readonly isForTrying: boolean
}

/** The text. It contains no secret, as the output may end up in a log. */
export const startupBanner = (start: Banner): string => {
  const { hasDemo, isForTrying, metricsAddress, natsHost, natsUrlFile, open, url } = start
  return `
  Bellcast is ready.${hasDemo && url !== undefined ? demo(url) : "\n"}
    HTTP API           ${url ?? "not in this process"}
    Metrics, probes    ${metricsAddress === undefined ? "off" : `http://${metricsAddress}/metrics`}
    NATS               ${natsHost}; for \`nats\`: export NATS_URL=${textOf(natsUrlFile)}
    VAPID public key   ${start.vapidPublicKey}
    Logins             ${start.logins}
    Publishers         ${start.publishers}
${openLine(open)}${isForTrying && url !== undefined ? trial(url) : ""}
  Ctrl-C stops the service; your data stays.
`
}

const argsFor = (url: string) => (url === `${urlDefault}/` ? "" : ` ARGS="--url ${url}"`)

const demo = (url: string): string => ` See a push in your browser:

    ${url}console/#/try
`

/** The shell sets the time, which `make listen` shows the age by. */
const trial = (url: string): string => `
  Or in terminals, where NUMBER is the id in the response of the second command:

    make listen CHANNEL=news${argsFor(url)}
    curl -u publisher:secret -H 'Content-Type: application/json' \\
      -d '{"data":{"web_push":8030,"published_at":'$(node -p 'Date.now()')',"notification":
        {"title":"Hello","body":"from Bellcast","navigate":"https://example.org/"}}}' \\
      ${url}channels/news
    curl -s -u publisher:secret ${url}channels/news/broadcasts/NUMBER
    make audit BROADCAST=NUMBER
`

const openLine = (open: ReadonlyArray<string>): string =>
  open.length === 0 ? "" : `    Open to everybody  ${open.join(", ")}\n`

/** Whether the service would accept the commands that the startup banner shows. */
export const isForTrying = (
  {
    allowLoopbackEndpoints,
    channelWritePrincipals
  }: Pick<Settings["Service"], "allowLoopbackEndpoints" | "channelWritePrincipals">,
  policies: ReadonlyArray<NamedPolicy>
): boolean =>
  allowLoopbackEndpoints &&
  policies.some(({ module, name }) => module === undefined && kindOf(name) === "basicauth") &&
  channelWritePrincipals.some(({ principal }) => principal === "system.Authenticated")

type Publishing = Pick<Settings["Service"], "channelWritePrincipals">

/** Describes the publishers of the settings, without their ids: one may hold a mail address. */
const publishersOf = ({ channelWritePrincipals }: Publishing): string => {
  const isEverybody = channelWritePrincipals.some(
    ({ channels, principal }) => channels === "*" && principal.startsWith("system.")
  )
  if (isEverybody) return "every user"
  return channelWritePrincipals.length > 0
    ? "those in BELLCAST_CHANNEL_WRITE_PRINCIPALS"
    : "none by BELLCAST_CHANNEL_WRITE_PRINCIPALS; also see `make permissions` and `make token`"
}

/** The parts of the service that the settings open to everybody. */
const openOf = (
  { allowLoopbackEndpoints }: Pick<Settings["Service"], "allowLoopbackEndpoints">,
  gateway: Values<typeof gatewaySettings>
): ReadonlyArray<string> => {
  const limits = [
    gateway.newUsersPerAddressPerHourMax,
    gateway.requestsPerAddressPerMinuteMax,
    gateway.requestsPerUserPerMinuteMax,
    gateway.changesPerAddressPerHourMax,
    gateway.changesPerUserPerHourMax,
    gateway.newChannelsPerHourMax,
    gateway.membersPerCallerPerHourMax,
    gateway.broadcastBytesPerPublisherPerHourMax
  ]
  return [
    ...(allowLoopbackEndpoints ? ["endpoints on this machine"] : []),
    ...(gateway.publicMetrics ? ["metrics"] : []),
    ...(limits.includes(0) ? ["any number of users, channels, requests or changes"] : [])
  ]
}

const loginOf = ({ module, name }: NamedPolicy): string =>
  module === undefined && kindOf(name) === "basicauth"
    ? `${name} (any user name and password)`
    : name

/** The folder of the embedded nats-server. */
const natsFolder = (dataDir: string) => folderAt(join(dataDir, "nats"))

/** The file with the address and login of the embedded nats-server, as short as possible. */
const natsUrlFile = (dataDir: string): string => {
  const file = natsFolder(dataDir).url
  const fromHere = relative(process.cwd(), file)
  return fromHere.startsWith("..") ? file : fromHere
}
