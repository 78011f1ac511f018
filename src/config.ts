// Every setting: its name, unit, default and reason. Read once, at start, from BELLCAST_<NAME> or the file; those of HTTP are in gateway/settings.ts.
import { Config, Context, Layer, Schema } from "effect"
import { ttlSecondsMax } from "#domain/broadcast.ts"
import { pushHostFault } from "#domain/endpoint.ts"
import { nobodyFault } from "#domain/publisher.ts"
import { everySetting, type Values } from "#settings/every-setting.ts"
import { natsTlsSettings, natsUrlFault } from "#settings/nats-url.ts"
import { within } from "#settings/within.ts"
import { checkedText, words } from "#settings/words.ts"
import { log } from "#streams/log.ts"
import { work } from "#streams/work.ts"

export const roles = ["gateway", "projection", "fanout", "delivery", "tally"] as const
export type Role = (typeof roles)[number]

const withDefault = Config.withDefault

/** A host, with or without a port, that can stand in a URL and in a header. */
export const plainHost = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d+)?$/u

/** On its own, too, so that a fault in any other setting can be logged. */
export const logLevel = Config.Literals(
  ["trace", "debug", "info", "warn", "error"],
  "BELLCAST_LOG_LEVEL"
).pipe(withDefault("info" as const))

export const settings = {
  /** Stages this process runs. Unset: all of them. */
  roles: Config.Array(
    Schema.Trim.pipe(Schema.decodeTo(Schema.Literals(roles))),
    "BELLCAST_ROLES"
  ).pipe(
    withDefault(roles),
    Config.map((named): ReadonlyArray<Role> => [...new Set(named)])
  ),
  /** Where our own data lives: the embedded server's store, keys created once. */
  dataDir: Config.String("BELLCAST_DATA_DIR").pipe(withDefault(".bellcast")),
  logLevel,

  /** An existing server or cluster (comma-separated). Unset: an embedded server is started. */
  natsUrl: Config.option(checkedText("BELLCAST_NATS_URL", natsUrlFault)),
  /** A NATS credentials file (JWT and nkey). */
  natsCreds: Config.option(Config.String("BELLCAST_NATS_CREDS")),
  /** PEM files for tls://. CA: the authorities to trust instead of the known ones. */
  natsTls: Config.all({
    ca: Config.option(Config.String(natsTlsSettings.ca)),
    /** The client's own certificate and private key, where the server demands them. */
    cert: Config.option(Config.String(natsTlsSettings.cert)),
    key: Config.option(Config.String(natsTlsSettings.key))
  }),
  /** Copies of every stream. 3 in production: what 202 promised then survives the loss of a server. */
  replicas: within("BELLCAST_REPLICAS", 1, 5).pipe(withDefault(1)),
  /** Bytes of the stream of commands, kept for ever: 4 GiB are about 6 million. Full means refused. At least room for a few of the largest. */
  logBytesMax: within("BELLCAST_LOG_BYTES_MAX", 65_536, 2 ** 50).pipe(withDefault(log.maxBytes)),
  /** Bytes of the stream of jobs and outcomes. Full means that deliveries wait. */
  workBytesMax: within("BELLCAST_WORK_BYTES_MAX", 65_536, 2 ** 50).pipe(withDefault(work.maxBytes)),

  host: Config.String("BELLCAST_HOST").pipe(withDefault("127.0.0.1")),
  port: within("BELLCAST_PORT", 1, 65_535).pipe(withDefault(9999)),
  /** Scheme and host (with port) that generated URLs carry, when a proxy stands in front. */
  httpScheme: Config.option(Config.Literals(["http", "https"], "BELLCAST_HTTP_SCHEME")),
  httpHost: Config.option(
    Config.schema(
      Schema.String.pipe(
        Schema.check(
          Schema.isPattern(plainHost, { message: "Expected a host, with or without a port" })
        )
      ),
      "BELLCAST_HTTP_HOST"
    )
  ),
  /** Seconds in Retry-After. */
  retryAfterSeconds: within("BELLCAST_RETRY_AFTER_SECONDS", 1, 86_400).pipe(withDefault(3)),
  /** A body larger than this is answered 413. It must fit into a LOG message (32 KiB) with its envelope. */
  bodyBytesMax: within("BELLCAST_BODY_BYTES_MAX", 256, 16_384).pipe(withDefault(16_384)),
  /** Subscriptions a user may hold. 50 of the largest still fit into one bucket value (1 MiB). */
  subscriptionsPerUserMax: within("BELLCAST_SUBSCRIPTIONS_PER_USER_MAX", 1, 50).pipe(
    withDefault(50)
  ),
  /**
   * Channels a user may be registered to: a person follows dozens. 200 with the longest names
   * take 0.2 MB of LOG and 0.2 MB of buckets, and 0.25 MB of the NATS server's memory.
   */
  registrationsPerUserMax: within("BELLCAST_REGISTRATIONS_PER_USER_MAX", 1, 100_000).pipe(
    withDefault(200)
  ),
  /** How long a write waits for the projection (read-your-writes). Longer than the projector's failover of 3 s. */
  appliedTimeoutMillis: within("BELLCAST_APPLIED_TIMEOUT_MILLIS", 100, 60_000).pipe(
    withDefault(5_000)
  ),

  /** Keys the pseudonyms of users in subjects and the ids of basic auth. Changing it makes every user a stranger. */
  useridHmacSecret: Config.option(Config.Redacted("BELLCAST_USERID_HMAC_SECRET")),
  /** Principals that may publish on every channel: `policy:id`, system.Authenticated, system.Everyone. Nobody by default. */
  channelWritePrincipals: words("BELLCAST_CHANNEL_WRITE_PRINCIPALS", nobodyFault),

  vapidPublicKey: Config.option(Config.String("BELLCAST_VAPID_PUBLIC_KEY")),
  vapidPrivateKey: Config.option(Config.Redacted("BELLCAST_VAPID_PRIVATE_KEY")),
  /** Pairs that were current once, the oldest first: `public:private,...`. They sign for the subscriptions made with them. `public:retired`: given up. */
  vapidFormerKeys: Config.option(Config.Redacted("BELLCAST_VAPID_FORMER_KEYS")),
  /** Whom push services may write to about our traffic: mailto: or https: (RFC 8292 section 2.1). */
  vapidSubject: Config.option(Config.String("BELLCAST_VAPID_SUBJECT")),

  /** Life of a push whose publisher sends no TTL. */
  ttlSecondsDefault: within("BELLCAST_TTL_SECONDS_DEFAULT", 0, ttlSecondsMax).pipe(
    withDefault(86_400)
  ),
  /** First retry delay; doubles with each attempt, 15 minutes at most. FCM asks for at least 10 s. */
  retryBaseMillis: within("BELLCAST_RETRY_BASE_MILLIS", 10, 900_000).pipe(withDefault(10_000)),
  /**
   * Pushes sent but not yet recorded, over the whole process: the most that a crash can send twice. 512 under
   * way, and 256 whose results wait for 20 ms and for the disk (at 4,000 pushes a second: 64 ms).
   */
  unrecordedPushesMax: within("BELLCAST_UNRECORDED_PUSHES_MAX", 1, 65_536).pipe(withDefault(768)),
  /** Shards a process works on at once. */
  shardsInFlight: within("BELLCAST_SHARDS_IN_FLIGHT", 1, 512).pipe(withDefault(128)),
  /** Subscriptions a delivery process remembers, with their keys decoded: 6 KB each. More are read again for every broadcast, at twice the cost. */
  rememberedSubscriptionsMax: within("BELLCAST_REMEMBERED_SUBSCRIPTIONS_MAX", 0, 10_000_000).pipe(
    withDefault(131_072)
  ),
  /**
   * Pushes under way to one push service. The window starts at 64 and grows while pushes wait and the process
   * has time: at 60 ms a push 512 are 8,500 a second, more than one process can send.
   */
  pushesUnderWayMax: within("BELLCAST_PUSHES_UNDER_WAY_MAX", 1, 4_096).pipe(withDefault(512)),
  /**
   * HTTP/2 to push services that offer it: 16 sessions of 32 pushes instead of a connection for each push.
   * HTTP/2 costs about 0.04 CPU seconds per 1,000 pushes more and saves connections and handshakes.
   */
  http2: Config.Boolean("BELLCAST_HTTP2").pipe(withDefault(true)),
  /** How long a push service may take to answer. */
  pushTimeoutMillis: within("BELLCAST_PUSH_TIMEOUT_MILLIS", 100, 60_000).pipe(withDefault(10_000)),
  /** How long a push service that refuses our credentials is left alone before a push tries again; the longest for one that does not answer. */
  breakerOpenMillis: within("BELLCAST_BREAKER_OPEN_MILLIS", 10, 3_600_000).pipe(
    withDefault(60_000)
  ),
  /**
   * Of the strikes against one subscription, the least time between two; three over more than three times as long suspend it. With 8 hours
   * nothing that passes within a day costs anybody a subscription.
   */
  strikeIntervalMillis: within("BELLCAST_STRIKE_INTERVAL_MILLIS", 10, 604_800_000).pipe(
    withDefault(28_800_000)
  ),
  /** DEVELOPMENT ONLY: lets subscriptions point at this machine over plain http. Anyone who may subscribe could then reach local services. */
  allowLoopbackEndpoints: Config.Boolean("BELLCAST_ALLOW_LOOPBACK_ENDPOINTS").pipe(
    withDefault(false)
  ),
  /** Hosts of push services beside the known ones; `*.example.org` takes every subdomain. */
  pushHosts: words("BELLCAST_PUSH_HOSTS", pushHostFault)
}

export type SettingsShape = Values<typeof settings>

export class Settings extends Context.Service<Settings, SettingsShape>()("bellcast/Settings") {
  static readonly layer = Layer.effect(Settings, everySetting(settings))
}
