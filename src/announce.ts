// Says that the service is ready, where it is, and at the end that it stops: in the log and, beside
// an embedded server, as a text for whoever started it.
import { join, relative } from "node:path"
import { Effect, Option } from "effect"
import type { Settings } from "#config"
import { announceApi } from "#embedded/api-address.ts"
import { folderAt } from "#embedded/folder.ts"
import { identitySettings, kindOf, type NamedPolicy } from "#identity/settings.ts"
import { MetricsPort } from "#monitoring/port.ts"
import { hostsOf } from "#nats/connection/connection.ts"
import { everySetting } from "#settings/every-setting.ts"
import { startupBanner } from "./startup-banner.ts"

export interface Ready {
  readonly settings: Settings["Service"]
  readonly secrets: { readonly vapidPublicKey: string }
  /** Base URL of the HTTP API. */
  readonly root: string
  /** Address of NATS, with the login. */
  readonly natsUrl: string
}

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

/** The folder of the embedded nats-server. */
const natsFolder = (dataDir: string) => folderAt(join(dataDir, "nats"))

/** The file with the address and login of the embedded nats-server, as short as possible. */
const natsUrlFile = (dataDir: string): string => {
  const file = natsFolder(dataDir).url
  const fromHere = relative(process.cwd(), file)
  return fromHere.startsWith("..") ? file : fromHere
}

const printBanner = ({ natsUrl, root, secrets, settings }: Ready, metrics: string | undefined) =>
  Effect.map(everySetting(identitySettings), ({ authPolicies }) => {
    const text = startupBanner({
      url: root,
      metricsAddress: metrics,
      natsHost: hostsOf(natsUrl),
      natsUrlFile: natsUrlFile(settings.dataDir),
      vapidPublicKey: secrets.vapidPublicKey,
      isForTrying: isForTrying(settings, authPolicies)
    })
    process.stdout.write(text)
  })

/** Says that the service is ready and, at the end of the scope, that it stops. */
export const announced = Effect.fnUntraced(function* (ready: Ready) {
  const { natsUrl, root, settings } = ready
  const { address: metrics } = yield* MetricsPort
  if (Option.isNone(settings.natsUrl)) {
    if (settings.roles.includes("gateway")) yield* announceApi(natsFolder(settings.dataDir), root)
    yield* printBanner(ready, metrics)
  }
  const fields = { roles: settings.roles.join(","), nats: hostsOf(natsUrl), metrics }
  yield* Effect.acquireRelease(Effect.logInfo("ready", fields), () => Effect.logInfo("stopping"))
})
