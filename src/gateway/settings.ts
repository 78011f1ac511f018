// The gateway's settings: what operators can change about the HTTP contract. Read once, at start, from BELLCAST_<NAME> or the file.
import { Config, Context, Layer, Schema } from "effect"
import { everySetting, type Values } from "#settings/every-setting.ts"
import { within } from "#settings/within.ts"
import { words } from "#settings/words.ts"
import packageJson from "../../package.json" with { type: "json" }
import { rangeError } from "./server/address.ts"

const withDefault = Config.withDefault
const day = 86_400
const year = 365 * day
const optional = (name: string) => Config.String(name).pipe(withDefault(""))
const flag = (name: string, value: boolean) => Config.Boolean(name).pipe(withDefault(value))

const iso8601 = /^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})?)?$/
/** A date means its midnight, local time. */
const isoDate = Schema.String.pipe(
  Schema.check(
    Schema.makeFilter(
      (text: string) =>
        (iso8601.test(text) && !Number.isNaN(Date.parse(text))) || "Expected an ISO 8601 date"
    )
  )
)

export const gatewaySettings = {
  projectName: Config.String("BELLCAST_PROJECT_NAME").pipe(withDefault("bellcast")),
  projectVersion: Config.String("BELLCAST_PROJECT_VERSION").pipe(withDefault(packageJson.version)),
  /** Unset: the API's own description. */
  projectDocs: optional("BELLCAST_PROJECT_DOCS"),
  /** MAJOR.MINOR; the major part is the version prefix of every path. */
  httpApiVersion: Config.schema(
    Schema.String.pipe(
      Schema.check(Schema.isPattern(/^\d+\.\d+$/u, { message: "Expected a version such as 1.0" }))
    ),
    "BELLCAST_HTTP_API_VERSION"
  ).pipe(withDefault("1.0")),
  /** Where __version__ looks first; then beside the code. */
  versionJsonPath: Config.String("BELLCAST_VERSION_JSON_PATH").pipe(withDefault("version.json")),
  /** `info` of a 500. Unset: the project's documentation. */
  errorInfoLink: optional("BELLCAST_ERROR_INFO_LINK"),

  /** Everything but GET, HEAD and OPTIONS is refused. */
  readonly: flag("BELLCAST_READONLY", false),
  /** Seconds for which clients shall avoid needless requests; 0: not said. */
  backoff: within("BELLCAST_BACKOFF", 0, day).pipe(withDefault(0)),
  /** Share of answers that carry Backoff, so that not all clients stop and return together. */
  backoffPercentage: within("BELLCAST_BACKOFF_PERCENTAGE", 0, 100).pipe(withDefault(100)),
  /** End of service: Alert before it, 410 after it. */
  eos: Config.option(Config.schema(isoDate, "BELLCAST_EOS")),
  eosMessage: optional("BELLCAST_EOS_MESSAGE"),
  eosUrl: optional("BELLCAST_EOS_URL"),

  /** Objects in a list answer; 0: all of them (a user has few). */
  paginateBy: within("BELLCAST_PAGINATE_BY", 0, 10_000).pipe(withDefault(0)),
  storageMaxFetchSize: within("BELLCAST_STORAGE_MAX_FETCH_SIZE", 1, 10_000).pipe(
    withDefault(10_000)
  ),
  /** How long the Next-Page of a DELETE may be followed. */
  paginationTokenValiditySeconds: within("BELLCAST_PAGINATION_TOKEN_VALIDITY_SECONDS", 1, day).pipe(
    withDefault(600)
  ),
  /** Requests in a batch; 0: 1,000, within the bytes of 100 bodies. */
  batchMaxRequests: within("BELLCAST_BATCH_MAX_REQUESTS", 0, 1_000).pipe(withDefault(25)),
  /**
   * New users that one address may bring in an hour, under policies that verify nobody: a crowd
   * behind one address, 100 at once and one every 36 s. 0: any number. Of each process.
   */
  newUsersPerAddressPerHourMax: within(
    "BELLCAST_NEW_USERS_PER_ADDRESS_PER_HOUR_MAX",
    0,
    1_000_000
  ).pipe(withDefault(100)),
  heartbeatTimeoutSeconds: within("BELLCAST_HEARTBEAT_TIMEOUT_SECONDS", 1, 60).pipe(
    withDefault(10)
  ),

  /** Connections in all. Each takes a descriptor and, while a request is under way, some 20 KB. */
  connectionsMax: within("BELLCAST_CONNECTIONS_MAX", 16, 1_000_000).pipe(withDefault(4_096)),
  /** Connections, and requests under way, of one address: an office behind one address has some. */
  connectionsPerAddressMax: within("BELLCAST_CONNECTIONS_PER_ADDRESS_MAX", 1, 1_000_000).pipe(
    withDefault(512)
  ),
  /** Addresses and ranges of proxies in front, whose X-Forwarded-For names the client. */
  trustedProxies: words("BELLCAST_TRUSTED_PROXIES", rangeError),

  /** Origins of pages that may call, shell patterns separated by blanks. */
  corsOrigins: Config.String("BELLCAST_CORS_ORIGINS").pipe(
    withDefault("*"),
    Config.map((text) => text.split(/[\s,]+/).filter((origin) => origin !== ""))
  ),
  /** How long browsers keep a preflight answer; -1: not said. */
  corsMaxAgeSeconds: within("BELLCAST_CORS_MAX_AGE_SECONDS", -1, year).pipe(withDefault(3_600)),

  versionPrefixRedirectEnabled: flag("BELLCAST_VERSION_PREFIX_REDIRECT_ENABLED", true),
  /** How long a redirect may be cached; -1: nothing is said. */
  versionPrefixRedirectTtlSeconds: within(
    "BELLCAST_VERSION_PREFIX_REDIRECT_TTL_SECONDS",
    -1,
    year
  ).pipe(withDefault(-1)),
  trailingSlashRedirectEnabled: flag("BELLCAST_TRAILING_SLASH_REDIRECT_ENABLED", true),
  trailingSlashRedirectTtlSeconds: within(
    "BELLCAST_TRAILING_SLASH_REDIRECT_TTL_SECONDS",
    -1,
    year
  ).pipe(withDefault(3600)),

  /** Methods that can be switched off: they then answer 405. HEAD goes with GET. */
  enabled: Config.all({
    "subscription-list GET": flag("BELLCAST_PLURAL_SUBSCRIPTION_GET_ENABLED", true),
    "subscription-list POST": flag("BELLCAST_PLURAL_SUBSCRIPTION_POST_ENABLED", true),
    "subscription-list DELETE": flag("BELLCAST_PLURAL_SUBSCRIPTION_DELETE_ENABLED", true),
    "subscription GET": flag("BELLCAST_OBJECT_SUBSCRIPTION_GET_ENABLED", true),
    "subscription PUT": flag("BELLCAST_OBJECT_SUBSCRIPTION_PUT_ENABLED", true),
    "subscription DELETE": flag("BELLCAST_OBJECT_SUBSCRIPTION_DELETE_ENABLED", true),
    /** Off where a proxy decides by path or credentials: it sees neither those of the entries. */
    "batch POST": flag("BELLCAST_BATCH_ENABLED", true)
  })
}

export class GatewaySettings extends Context.Service<
  GatewaySettings,
  Values<typeof gatewaySettings>
>()("bellcast/gateway/Settings") {
  static readonly layer = Layer.effect(GatewaySettings, everySetting(gatewaySettings))
}
