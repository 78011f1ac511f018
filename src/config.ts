// Every setting of the service: name, unit, bounds, default and reason. Read once, at start. The
// settings of the HTTP contract are in gateway/settings.ts; settings/source.ts says where values
// come from.
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import {
  operatorFault,
  registerRuleFault,
  registerRuleOf,
  userWriteFault,
  writeRuleFault,
  writeRuleOf
} from "#domain/publisher.ts"
import { pushHostFault } from "#domain/subscription/endpoint.ts"
import {
  address,
  inboxPrefixFault,
  listenAddressFault,
  natsTlsSettings,
  natsUrlFault,
  ownHost,
  urlHost
} from "#settings/addresses.ts"
import { everySetting, type Values } from "#settings/every-setting.ts"
import { checkedText, secret, within, words } from "#settings/values.ts"

export const roles = ["gateway", "projection", "fanout", "delivery", "tally"] as const
export type Role = (typeof roles)[number]

const withDefault = Config.withDefault

/** Default of BELLCAST_CACHE_BYTES_MAX. */
export const cacheBytesMax: number = 112 * 1024 ** 2

const portDefault = 9999

/** Base URL of a service with default settings. */
export const urlDefault = `http://127.0.0.1:${portDefault}/v1`

/** A host, with or without a port, that can stand in a URL and in a header. */
export const plainHost = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d+)?$/u

/** Also read on its own, so that a fault in any other setting can be logged. */
export const logLevel = Config.Literals(
  ["trace", "debug", "info", "warn", "error"],
  "BELLCAST_LOG_LEVEL"
).pipe(withDefault("info" as const))

export const settings = {
  /** Stages that this process runs. Unset: all of them. */
  roles: Config.Array(
    Schema.Trim.pipe(Schema.decodeTo(Schema.Literals(roles))),
    "BELLCAST_ROLES"
  ).pipe(
    withDefault(roles),
    Config.map((named): ReadonlyArray<Role> => [...new Set(named)])
  ),
  /** Folder of the embedded server's store and of the secrets made beside it. */
  dataDir: Config.String("BELLCAST_DATA_DIR").pipe(withDefault(".bellcast")),
  logLevel,
  /** The operator's list of erased users. A restored LOG that is older has some of them again. */
  erasedFile: Config.option(Config.String("BELLCAST_ERASED_FILE")),

  /** An existing server, or servers of a cluster. Unset: an embedded server is started. */
  natsUrl: Config.option(checkedText("BELLCAST_NATS_URL", natsUrlFault)),
  /** A NATS credentials file (JWT and nkey). */
  natsCreds: Config.option(Config.String("BELLCAST_NATS_CREDS")),
  /** The same for all processes. Responses hold endpoints and keys: only these may read them. */
  natsInboxPrefix: checkedText("BELLCAST_NATS_INBOX_PREFIX", inboxPrefixFault).pipe(
    withDefault("_INBOX")
  ),
  /**
   * PEM files for tls://. CA: the authorities to trust instead of those of Node.js and the system.
   */
  natsTls: Config.all({
    ca: Config.option(Config.String(natsTlsSettings.ca)),
    /** Certificate and private key of this client, for servers that demand them. */
    cert: Config.option(Config.String(natsTlsSettings.cert)),
    key: Config.option(Config.String(natsTlsSettings.key))
  }),
  /**
   * How long a start waits for a server that it can reach, and then for the leaders of JetStream
   * and of its streams. A cluster elects them within 10 s once a majority of its servers runs; the
   * rest is for servers that start.
   */
  natsWaitSeconds: within("BELLCAST_NATS_WAIT_SECONDS", 1, 3_600).pipe(withDefault(60)),
  /**
   * Copies of every stream. 3 in production: an accepted message then survives the loss of a
   * server. Unset: existing streams keep theirs, so that one process without the setting does not
   * lower them for all.
   */
  replicas: Config.option(within("BELLCAST_REPLICAS", 1, 5)),
  /**
   * Most bytes of the stream LOG, whose commands never expire: 4 GiB are about 6 million. When it
   * is full, requests that make it grow are refused. The minimum has room for a few of the largest
   * messages. Unset: an existing stream keeps its limit; a new one gets 4 GiB, or less where NATS
   * has less storage.
   */
  logBytesMax: Config.option(within("BELLCAST_LOG_BYTES_MAX", 65_536, 2 ** 50)),
  /** Most bytes of the stream WORK. When it is full, deliveries wait. Unset: as for LOG. */
  workBytesMax: Config.option(within("BELLCAST_WORK_BYTES_MAX", 65_536, 2 ** 50)),
  /**
   * Days for which LOG keeps how the present came about. Of older messages it keeps what the
   * present rests on. 95: a broadcast waits up to 30 days, lives 28, and its redrive needs 35 more.
   */
  historyDays: within("BELLCAST_HISTORY_DAYS", 95, 36_500).pipe(withDefault(400)),

  host: address("BELLCAST_HOST", ownHost).pipe(withDefault("127.0.0.1")),
  /** 0: any free port, which the log line `ready` names. */
  port: within("BELLCAST_PORT", 0, 65_535).pipe(withDefault(portDefault)),
  /**
   * How long a gateway serves on after SIGTERM while `__lbheartbeat__` is 503, so that load
   * balancers have stopped sending to it when its port closes. 5: two probes in the usual 2 s, and
   * with the drain of 20 s below the 30 s after which Compose and Kubernetes kill.
   */
  shutdownWaitSeconds: within("BELLCAST_SHUTDOWN_WAIT_SECONDS", 0, 300).pipe(withDefault(5)),
  /** Scheme and host (with port) of URLs in responses, behind a proxy. */
  httpScheme: Config.option(Config.Literals(["http", "https"], "BELLCAST_HTTP_SCHEME")),
  httpHost: Config.option(address("BELLCAST_HTTP_HOST", urlHost)),
  /**
   * Where this process shows its metrics and heartbeats: `host:port`, or `off`. Unset: a port of
   * the loopback interface, as the metrics are for operators only.
   */
  metricsAddress: Config.option(checkedText("BELLCAST_METRICS_ADDRESS", listenAddressFault)),
  /** Seconds in Retry-After. */
  retryAfterSeconds: within("BELLCAST_RETRY_AFTER_SECONDS", 1, 86_400).pipe(withDefault(3)),
  /** Subscriptions of one user. 50 of the largest still fit into one bucket value (1 MiB). */
  subscriptionsPerUserMax: within("BELLCAST_SUBSCRIPTIONS_PER_USER_MAX", 1, 50).pipe(
    withDefault(50)
  ),
  /**
   * The same at one push service, which gets as many pushes for a broadcast. Ten devices with two
   * browsers each may have the same push service.
   */
  subscriptionsPerUserPerHostMax: within(
    "BELLCAST_SUBSCRIPTIONS_PER_USER_PER_HOST_MAX",
    1,
    50
  ).pipe(withDefault(20)),
  /**
   * Channels that a user may be registered to; people follow dozens. 200 with the longest names
   * take 0.2 MB of LOG, 0.2 MB of buckets, and 0.25 MB of the NATS server's memory.
   */
  registrationsPerUserMax: within("BELLCAST_REGISTRATIONS_PER_USER_MAX", 1, 10_000).pipe(
    withDefault(200)
  ),

  /**
   * Key of the pseudonyms of users in subjects and of the ids of basic authentication. Changing it
   * gives every user a new id. Ids and a fingerprint in LOG would let anybody test guesses of a
   * short one.
   */
  useridHmacSecret: Config.option(secret("BELLCAST_USERID_HMAC_SECRET")),
  /**
   * Publishers: `policy:id`, `group:policy:name`, system.Authenticated or system.Everyone, on every
   * channel or, as `news*=policy:id`, on those that a pattern matches.
   */
  channelWritePrincipals: words("BELLCAST_CHANNEL_WRITE_PRINCIPALS", writeRuleFault).pipe(
    Config.map((rules) => rules.map(writeRuleOf))
  ),
  /**
   * Closes channels: `pattern=principal` for all but those with the principal, `pattern=` for
   * everybody. The rules of all matching patterns add up.
   */
  channelRegisterPrincipals: words("BELLCAST_CHANNEL_REGISTER_PRINCIPALS", registerRuleFault).pipe(
    Config.map((rules) => rules.map(registerRuleOf))
  ),
  /**
   * The principals that may name users in requests: `policy:id` or `group:policy:name`, never
   * everybody.
   */
  userWritePrincipals: words("BELLCAST_USER_WRITE_PRINCIPALS", userWriteFault),
  /** Operators: `policy:id` or `group:policy:name`, never everybody. */
  operatorPrincipals: words("BELLCAST_OPERATOR_PRINCIPALS", operatorFault),

  vapidPublicKey: Config.option(Config.String("BELLCAST_VAPID_PUBLIC_KEY")),
  vapidPrivateKey: Config.option(Config.Redacted("BELLCAST_VAPID_PRIVATE_KEY")),
  /**
   * Former pairs, the oldest first: `public:private,...`. They sign for the subscriptions made with
   * them. `public:retired`: given up.
   */
  vapidFormerKeys: Config.option(Config.Redacted("BELLCAST_VAPID_FORMER_KEYS")),
  /** Contact for push services: mailto: or https: (RFC 8292 section 2.1). */
  vapidSubject: Config.option(Config.String("BELLCAST_VAPID_SUBJECT")),

  /**
   * Delay of the first retry. Doubles with each attempt, up to 15 minutes. FCM asks for at least 10
   * s.
   */
  retryBaseMillis: within("BELLCAST_RETRY_BASE_MILLIS", 10, 900_000).pipe(withDefault(10_000)),
  /**
   * Pushes of this process that are sent but not recorded. A crash sends at most these twice. 768
   * are 512 under way, and 256 whose outcomes wait 20 ms for their batch and then for the disk (at
   * 4,000 pushes a second: 64 ms).
   */
  unrecordedPushesMax: within("BELLCAST_UNRECORDED_PUSHES_MAX", 1, 65_536).pipe(withDefault(768)),
  /**
   * Processes that deliver where this one does: it starts the others when it is too busy, and ends
   * them five minutes later. They divide the bounds of one process among themselves. Unset: as many
   * as it has cores, if its memory is enough.
   */
  deliveryProcesses: Config.option(within("BELLCAST_DELIVERY_PROCESSES", 1, 64)),
  /** Shards that a process works on at once. */
  shardsInFlight: within("BELLCAST_SHARDS_IN_FLIGHT", 1, 512).pipe(withDefault(128)),
  /**
   * Most bytes in all caches of this process. More of it saves CPU: of 100,000 subscriptions the
   * default keeps the keys of a fifth, ready for encryption.
   */
  cacheBytesMax: within("BELLCAST_CACHE_BYTES_MAX", 0, 2 ** 40).pipe(withDefault(cacheBytesMax)),
  /**
   * Most pushes under way to one push service. The window starts at 64 and grows while pushes wait
   * and the process has time. At 60 ms a push, 512 are 8,500 a second: more than a process can
   * send.
   */
  pushesUnderWayMax: within("BELLCAST_PUSHES_UNDER_WAY_MAX", 1, 4_096).pipe(withDefault(512)),
  /**
   * HTTP/2 to push services that offer it: 16 sessions of 32 pushes instead of a connection for
   * each push. HTTP/2 costs about 0.04 CPU seconds per 1,000 pushes more and saves connections and
   * handshakes.
   */
  http2: Config.Boolean("BELLCAST_HTTP2").pipe(withDefault(true)),
  /** How long a push service may take to respond. */
  pushTimeoutMillis: within("BELLCAST_PUSH_TIMEOUT_MILLIS", 100, 60_000).pipe(withDefault(10_000)),
  /**
   * How long the credentials breaker stays open before a probe. Also the longest time for which the
   * connectivity breaker stays open.
   */
  breakerOpenMillis: within("BELLCAST_BREAKER_OPEN_MILLIS", 10, 3_600_000).pipe(
    withDefault(60_000)
  ),
  /**
   * Least time between two strikes against a subscription. The third strike suspends it, if it
   * comes more than three times as long after the first. With 8 hours, a failure that ends within a
   * day suspends no subscription.
   */
  strikeIntervalMillis: within("BELLCAST_STRIKE_INTERVAL_MILLIS", 10, 604_800_000).pipe(
    withDefault(28_800_000)
  ),
  /**
   * DEVELOPMENT ONLY: subscriptions may point at this machine over plain HTTP. Anyone who may
   * subscribe can then reach its local services.
   */
  allowLoopbackEndpoints: Config.Boolean("BELLCAST_ALLOW_LOOPBACK_ENDPOINTS").pipe(
    withDefault(false)
  ),
  /** Hosts of push services beside the known ones. `*.example.org` stands for every subdomain. */
  pushHosts: words("BELLCAST_PUSH_HOSTS", pushHostFault)
}

export type SettingsShape = Values<typeof settings>

export class Settings extends Context.Service<Settings, SettingsShape>()("bellcast/Settings") {
  static readonly layer = Layer.effect(Settings, everySetting(settings))
}
