// The processes of a run: several of every role, some with more than one.
import { claimPort } from "../../support/ports.ts"
import { certificatePath } from "../../support/tls.ts"
import type { Nodes, Role, Shape } from "../faults/fault.ts"
import { source } from "../load/nats.ts"
import type { VapidPair } from "../push/vapid.ts"
import { historyDays } from "./days.ts"
import { type FleetMember, makeMember } from "./member.ts"
import { idOf, operator, publisher, useridSecret } from "./users.ts"

const everybody: ReadonlyArray<readonly [string, ...Array<Role>]> = [
  ["gate-1", "gateway"],
  ["gate-2", "gateway", "tally"],
  ["fold-1", "projection"],
  ["fold-2", "projection", "tally"],
  ["plan-1", "fanout"],
  ["plan-2", "fanout", "delivery"],
  ["send-1", "delivery"],
  ["send-2", "delivery"]
]

/** Two of every role in four processes: for two minutes on a small machine. */
const few: ReadonlyArray<readonly [string, ...Array<Role>]> = [
  ["gate-1", "gateway", "projection"],
  ["gate-2", "gateway", "tally", "projection"],
  ["send-1", "delivery", "fanout", "tally"],
  ["send-2", "delivery", "fanout"]
]

/** Names and roles of the fleet's processes. */
export const membersOf = (isShort: boolean): Shape["members"] =>
  (isShort ? few : everybody).map(([name, ...roles]) => ({ name, roles }))

export interface FleetOptions {
  readonly nodes: Nodes
  readonly folder: string
  readonly program: string
  readonly natsUrlOf: (name: string) => Promise<string>
  readonly vapid: VapidPair
  readonly isShort: boolean
  readonly permits: number
}

/** Users register here by a grant alone; internal services register anybody. */
export const closedChannel = "few"

/** The settings that the commands of an operator need, too. */
export const operatorSettings = {
  BELLCAST_USERID_HMAC_SECRET: useridSecret,
  BELLCAST_HISTORY_DAYS: String(historyDays),
  BELLCAST_CHANNEL_REGISTER_PRINCIPALS: `${closedChannel}=`
}

/** Waits are short, so that a cycle heals in seconds. */
const settingsOf = ({ nodes, permits, vapid }: FleetOptions) => ({
  NODE_EXTRA_CA_CERTS: certificatePath,
  BELLCAST_VAPID_PUBLIC_KEY: vapid.publicKey,
  BELLCAST_VAPID_PRIVATE_KEY: vapid.privateKey,
  BELLCAST_VAPID_SUBJECT: "mailto:torture@example.com",
  BELLCAST_AUTH_POLICIES: "basicauth token",
  BELLCAST_CHANNEL_WRITE_PRINCIPALS: `${idOf(publisher)} nats:${source}`,
  ...operatorSettings,
  BELLCAST_OPERATOR_PRINCIPALS: idOf(operator),
  BELLCAST_USER_WRITE_PRINCIPALS: `nats:${source}`,
  BELLCAST_MEMBERS_PER_CALLER_PER_HOUR_MAX: "0",
  BELLCAST_ALLOW_LOOPBACK_ENDPOINTS: "true",
  BELLCAST_NEW_USERS_PER_ADDRESS_PER_HOUR_MAX: "0",
  BELLCAST_REQUESTS_PER_ADDRESS_PER_MINUTE_MAX: "0",
  BELLCAST_REQUESTS_PER_USER_PER_MINUTE_MAX: "0",
  BELLCAST_CHANGES_PER_ADDRESS_PER_HOUR_MAX: "0",
  BELLCAST_CHANGES_PER_USER_PER_HOUR_MAX: "0",
  BELLCAST_BROADCAST_BYTES_PER_PUBLISHER_PER_HOUR_MAX: "0",
  BELLCAST_NEW_CHANNELS_PER_HOUR_MAX: "0",
  BELLCAST_METRICS_ADDRESS: "127.0.0.1:0",
  BELLCAST_SHUTDOWN_WAIT_SECONDS: "1",
  BELLCAST_REPLICAS: String(nodes),
  BELLCAST_LOG_BYTES_MAX: String(256 * 1024 ** 2),
  // An hour of outcomes: 40 minutes take 256 MiB.
  BELLCAST_WORK_BYTES_MAX: String(1024 ** 3),
  BELLCAST_UNRECORDED_PUSHES_MAX: String(permits),
  // Empty: the default.
  BELLCAST_DELIVERY_PROCESSES: process.env["PROCESSES"] ?? "",
  BELLCAST_RETRY_BASE_MILLIS: "500",
  BELLCAST_BREAKER_OPEN_MILLIS: "3000",
  BELLCAST_PUSH_TIMEOUT_MILLIS: "5000"
})

export const makeFleet = async (options: FleetOptions): Promise<ReadonlyArray<FleetMember>> => {
  const wanted = membersOf(options.isShort)
  const ports = await Promise.all(wanted.map(claimPort))
  const env = settingsOf(options)
  return Promise.all(
    wanted.map(async ({ name, roles }, i) => {
      const { folder, program } = options
      const natsUrl = await options.natsUrlOf(name)
      const own = { ...env, BELLCAST_NATS_URL: natsUrl }
      return makeMember({ name, roles, port: ports[i]!, folder, program, env: own })
    })
  )
}
