// The settings of the gateway, read once at start from the environment or the settings file.
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import { address, addresses, originPattern, ownPagesOrigin, pageUrl } from "#settings/addresses.ts"
import { everySetting, type Values } from "#settings/every-setting.ts"
import { checkedText, within, words } from "#settings/values.ts"
import { rangeError } from "./client-address.ts"

const withDefault = Config.withDefault
const day = 86_400
const optional = (name: string) => Config.String(name).pipe(withDefault(""))
const flag = (name: string, value: boolean) => Config.Boolean(name).pipe(withDefault(value))

const iso8601 = /^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})?)?$/
/** Why a text is no ISO 8601 date. A date without a time means its midnight, local time. */
const dateFault = (text: string) =>
  iso8601.test(text) && !Number.isNaN(Date.parse(text)) ? undefined : "Expected an ISO 8601 date"

export const gatewaySettings = {
  projectName: Config.String("BELLCAST_PROJECT_NAME").pipe(withDefault("bellcast")),
  /** URL of the documentation. Unset: the API description. */
  projectDocs: address("BELLCAST_PROJECT_DOCS", pageUrl).pipe(withDefault("")),

  /** Rejects all methods but GET, HEAD and OPTIONS with 405. */
  readonly: flag("BELLCAST_READONLY", false),
  /** Seconds in the Backoff header, which asks clients for fewer requests. 0: no header. */
  backoff: within("BELLCAST_BACKOFF", 0, day).pipe(withDefault(0)),
  /** End of service: responses have Alert before, and are 410 after. */
  eos: Config.option(checkedText("BELLCAST_EOS", dateFault)),
  eosMessage: optional("BELLCAST_EOS_MESSAGE"),
  eosUrl: address("BELLCAST_EOS_URL", pageUrl).pipe(withDefault("")),

  /** Most objects in a page of a list. 0: no limit (a user has few subscriptions). */
  paginateBy: within("BELLCAST_PAGINATE_BY", 0, 10_000).pipe(withDefault(0)),
  /**
   * Whether each request is a line of the log: 99 % of a busy gateway's log. The metrics count them
   * all the same, and a proxy in front may log them.
   */
  logRequests: Config.Boolean("BELLCAST_LOG_REQUESTS").pipe(withDefault(true)),
  /** Most requests in a batch. 0: 1,000, with the bytes of 100 bodies. */
  batchMaxRequests: within("BELLCAST_BATCH_MAX_REQUESTS", 0, 1_000).pipe(withDefault(25)),
  /**
   * New users per address and hour, with policies that verify nobody. 100 allow many users behind
   * one address: 100 at once and one every 36 s. 0: no limit. Each process counts for itself.
   */
  newUsersPerAddressPerHourMax: within(
    "BELLCAST_NEW_USERS_PER_ADDRESS_PER_HOUR_MAX",
    0,
    1_000_000
  ).pipe(withDefault(100)),
  /**
   * Requests of one address in a minute; 6,000 are 100 a second, of an office or a mobile network.
   * Entries of a batch count. 0: no limit. Each process counts for itself.
   */
  requestsPerAddressPerMinuteMax: within(
    "BELLCAST_REQUESTS_PER_ADDRESS_PER_MINUTE_MAX",
    0,
    10_000_000
  ).pipe(withDefault(6_000)),
  /** The same of one user; a page sends fewer than ten. 600 let a server publish ten a second. */
  requestsPerUserPerMinuteMax: within(
    "BELLCAST_REQUESTS_PER_USER_PER_MINUTE_MAX",
    0,
    10_000_000
  ).pipe(withDefault(600)),
  /**
   * Subscriptions and registrations of one user that are stored in an hour. LOG keeps each for
   * ever. 300 are those of a user who joins 200 channels at once. 0: no limit. Each process counts
   * for itself.
   */
  changesPerUserPerHourMax: within("BELLCAST_CHANGES_PER_USER_PER_HOUR_MAX", 0, 10_000_000).pipe(
    withDefault(300)
  ),
  /**
   * The same of one address. 3,600 of 900 bytes each take 49 days to fill a LOG of 4 GiB; a larger
   * one counts as several.
   */
  changesPerAddressPerHourMax: within(
    "BELLCAST_CHANGES_PER_ADDRESS_PER_HOUR_MAX",
    0,
    10_000_000
  ).pipe(withDefault(3_600)),
  /**
   * Registrations of one user, and of one address, that begin a channel, in an hour. At most
   * 1,980 bytes of the bucket `channels` (192 MiB) each: 80 fill it in 50 days. 0: no limit. Each
   * process counts for itself.
   */
  newChannelsPerHourMax: within("BELLCAST_NEW_CHANNELS_PER_HOUR_MAX", 0, 10_000_000).pipe(
    withDefault(80)
  ),
  /**
   * Members that one caller with the right `users` registers in an hour: the users of a small site
   * at once. At most 9 MB of LOG in an hour. 0: no limit. Each process counts for itself.
   */
  membersPerCallerPerHourMax: within(
    "BELLCAST_MEMBERS_PER_CALLER_PER_HOUR_MAX",
    0,
    10_000_000
  ).pipe(withDefault(10_000)),
  /**
   * Bytes of LOG that the broadcasts of one publisher take in an hour, over HTTP and by requests on
   * NATS. LOG keeps each for a year and more: 27 MiB fill one of 4 GiB in 6 days, and are 8
   * broadcasts a second of usual size. 0: no limit. Each process counts for itself.
   */
  broadcastBytesPerPublisherPerHourMax: within(
    "BELLCAST_BROADCAST_BYTES_PER_PUBLISHER_PER_HOUR_MAX",
    0,
    2 ** 40
  ).pipe(withDefault(27 * 1024 ** 2)),
  heartbeatTimeoutSeconds: within("BELLCAST_HEARTBEAT_TIMEOUT_SECONDS", 1, 60).pipe(
    withDefault(10)
  ),

  /** Most connections. Each takes a file descriptor and, while a request runs, about 20 KB. */
  connectionsMax: within("BELLCAST_CONNECTIONS_MAX", 16, 1_000_000).pipe(withDefault(4_096)),
  /** Most connections, and running requests, of one address. An office may share one address. */
  connectionsPerAddressMax: within("BELLCAST_CONNECTIONS_PER_ADDRESS_MAX", 1, 1_000_000).pipe(
    withDefault(512)
  ),
  /** Addresses and ranges of trusted proxies: their X-Forwarded-For names the client. */
  trustedProxies: words("BELLCAST_TRUSTED_PROXIES", rangeError),

  /** Whether GET /__metrics__ answers. Metrics tell everybody how much is sent, and to whom. */
  publicMetrics: flag("BELLCAST_PUBLIC_METRICS", false),

  /** Whether GET /__heartbeat__ answers; /__lbheartbeat__, which says nothing else, always does. */
  publicHeartbeat: flag("BELLCAST_PUBLIC_HEARTBEAT", true),
  /** Whether GET /__api__ answers. */
  publicApiDescription: flag("BELLCAST_PUBLIC_API_DESCRIPTION", true),

  /**
   * The origin on whose host the console is served, so on no other. None: no console, but in
   * development, where every address of the service has it.
   */
  consoleOrigin: Config.option(address("BELLCAST_CONSOLE_ORIGIN", ownPagesOrigin)),

  /** Origins whose pages may call: shell patterns, separated by blanks or commas. */
  corsOrigins: addresses("BELLCAST_CORS_ORIGINS", originPattern).pipe(withDefault(["*"])),
  /**
   * Whether /batch offers POST. Switch it off behind a proxy that checks paths or credentials:
   * entries bypass the proxy.
   */
  batchEnabled: flag("BELLCAST_BATCH_ENABLED", true)
}

export class GatewaySettings extends Context.Service<
  GatewaySettings,
  Values<typeof gatewaySettings>
>()("bellcast/gateway/Settings") {
  static readonly layer = Layer.effect(GatewaySettings, everySetting(gatewaySettings))
}
