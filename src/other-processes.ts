// The other processes that deliver where this one does: how many there are, and their settings.
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { makeChildren } from "#children/children.ts"
import { ownMachine, processesFor } from "#children/processes.ts"
import type { Settings } from "#config"
import { currentKey, formatFormer } from "#secrets/key-set.ts"
import type { Secrets } from "#secrets/secrets.ts"
import { Source } from "#settings/source.ts"
import { showProcesses } from "#telemetry/delivery-metrics.ts"

interface Parent {
  readonly settings: Settings["Service"]
  readonly secrets: Secrets["Service"]
  /** Address of NATS, with the login. */
  readonly natsUrl: string
  /** Whether a signal told this process to stop. */
  readonly isStopRequested: () => boolean
}

/** The other processes that deliver; undefined: this one needs none. */
export const childrenOf = Effect.fnUntraced(function* (parent: Parent) {
  const processes = processesOf(parent.settings)
  if (parent.settings.roles.includes("delivery")) showProcesses({}, 1)
  if (processes < 2) return undefined
  const { found } = yield* Source
  const given = Object.fromEntries([...found].map(([name, { value }]) => [name, value]))
  const { isStopRequested } = parent
  const settings = { ...given, ...settingsOfChild(parent) }
  return makeChildren({ processes, settings, isStopRequested })
})

/** How many processes deliver, this one included. Each has a part of every bound, at least 1. */
const processesOf = ({
  deliveryProcesses,
  pushesUnderWayMax,
  roles,
  unrecordedPushesMax
}: Settings["Service"]): number => {
  if (!roles.includes("delivery")) return 1
  const wanted = Option.getOrElse(deliveryProcesses, () => processesFor(ownMachine()))
  return Math.min(wanted, pushesUnderWayMax, unrecordedPushesMax)
}

/** The settings in which another process differs, and those that this process has found out. */
const settingsOfChild = ({ natsUrl, secrets }: Parent): Record<string, string> => {
  const { useridHmacSecret, vapidKeys, vapidSubject = "" } = secrets
  const { privateKey, publicKey } = currentKey(vapidKeys)
  return {
    BELLCAST_ROLES: "delivery",
    BELLCAST_METRICS_ADDRESS: "off",
    BELLCAST_NATS_URL: natsUrl,
    BELLCAST_USERID_HMAC_SECRET: Redacted.value(useridHmacSecret),
    BELLCAST_VAPID_SUBJECT: vapidSubject,
    BELLCAST_VAPID_PUBLIC_KEY: publicKey,
    BELLCAST_VAPID_PRIVATE_KEY: privateKey === undefined ? "" : Redacted.value(privateKey),
    BELLCAST_VAPID_FORMER_KEYS: formatFormer(vapidKeys.filter((key) => key.publicKey !== publicKey))
  }
}
