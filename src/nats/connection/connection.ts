// The connection to NATS. Nothing outside this folder holds a NATS type.
import { readFile } from "node:fs/promises"
import {
  type JetStreamClient,
  type JetStreamManager,
  jetstream,
  jetstreamManager
} from "@nats-io/jetstream"
import {
  connect,
  credsAuthenticator,
  type NatsConnection,
  nuid,
  type Status
} from "@nats-io/transport-node"
import { Context, Effect, Layer, Stream } from "effect"
import { type NatsTlsFiles, natsUrls } from "#settings/nats-url.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { NatsUnavailable, unavailable } from "./errors.ts"
import { groupCommitApiLevel, makeGroupCommit, type Store } from "./group-commit.ts"
import { makeRequests, type Requests } from "./request.ts"
import { inWords, tlsOptions } from "./tls.ts"

/** nats-server 2.14: in older ones a stream goes on when its disk fails (nats-server #7788), and before 2.11 TTLs are ignored without a word. */
const apiLevelMin = 4
/** nats-server's default. A user's subscriptions are one message in a bucket. */
const payloadBytesMin = 1024 ** 2

export interface NatsOptions {
  /** Comma-separated; user and password may stand in the URL. */
  readonly url: string
  readonly credsFile?: string | undefined
  /** Used with tls:// only. */
  readonly tls?: NatsTlsFiles | undefined
  readonly name: string
}

const parse = (url: string) => natsUrls(url).map((one) => new URL(one))

/** Where the servers are, without the passwords that a URL may hold: fit for a log. */
export const hostsOf = (url: string): string =>
  natsUrls(url)
    .map((one) => URL.parse(one)?.host ?? "(no URL)")
    .join(",")

const servers = (url: string) => {
  const parsed = parse(url)
  const { password, username } = parsed[0]!
  const login =
    username === ""
      ? {}
      : password === ""
        ? { token: decodeURIComponent(username) }
        : { user: decodeURIComponent(username), pass: decodeURIComponent(password) }
  return { servers: parsed.map(({ host, protocol }) => `${protocol}//${host}`), ...login }
}

/** Says that the connection is lost or back, and what the server has against us. */
const told = (nc: NatsConnection) => {
  const refused = makeRateLimitedLog("NATS refuses")
  const lost = makeRateLimitedLog("the connection to NATS is lost; it is tried again")
  const one = (status: Status) => {
    if (status.type === "disconnect") return lost({ server: status.server })
    if (status.type === "reconnect")
      return Effect.logInfo("the connection to NATS is back", { server: status.server })
    return status.type === "error" ? refused({ reason: status.error.message }) : Effect.void
  }
  return Stream.fromAsyncIterable(nc.status(), String).pipe(Stream.runForEach(one), Effect.ignore)
}

const read = (credsFile: string) =>
  readFile(credsFile).catch(({ code }: NodeJS.ErrnoException) => {
    throw new Error(`the credentials file ${credsFile} cannot be read: ${code}`)
  })

export class Nats extends Context.Service<
  Nats,
  Requests & {
    readonly store: Store
    readonly nc: NatsConnection
    readonly js: JetStreamClient
    readonly jsm: JetStreamManager
  }
>()("bellcast/nats/Nats") {
  /** Connects, and refuses a server that is too old. Reconnects for ever; what was under way meanwhile fails as unavailable. */
  static readonly layer = (options: NatsOptions) =>
    Layer.effect(
      Nats,
      Effect.gen(function* () {
        const nc = yield* Effect.acquireRelease(
          Effect.tryPromise({
            try: async () =>
              connect({
                ...servers(options.url),
                ...(await tlsOptions(options.url, options.tls ?? {})),
                ...(options.credsFile === undefined
                  ? {}
                  : { authenticator: credsAuthenticator(await read(options.credsFile)) }),
                name: options.name,
                maxReconnectAttempts: -1,
                // Else the second refusal of our login closes the connection for good, though it may be put right a minute later.
                ignoreAuthErrorAbort: true,
                reconnectTimeWait: 250,
                // A host that lost power closes no connection: without an answer to two of these in a row, another is tried.
                pingInterval: 5_000,
                timeout: 5_000
              }),
            catch: (cause) =>
              new NatsUnavailable({
                operation: "connect",
                reason: { _tag: "NotConnected" },
                cause: inWords(cause, options.url, options.tls ?? {})
              })
          }),
          // Draining waits for the server; when that is gone, closing must not.
          (nc) =>
            Effect.tryPromise(() => nc.drain()).pipe(
              Effect.timeout("2 seconds"),
              Effect.ignore,
              Effect.andThen(Effect.promise(() => nc.close()))
            )
        )
        yield* Effect.forkScoped(told(nc))
        const { jsm, level } = yield* Effect.tryPromise({
          try: async () => {
            const jsm = await jetstreamManager(nc, {
              timeout: 5_000,
              sendRequiredApiLevel: true
            } as Parameters<typeof jetstreamManager>[1])
            const { api } = await jsm.getAccountInfo()
            const level = (api as { level?: number }).level ?? 0
            if (level < apiLevelMin)
              throw new Error(
                `nats-server ${nc.info?.version} is too old: JetStream API level ${level}, needed ${apiLevelMin} (2.14)`
              )
            const { max_payload: bytesMax = 0 } = nc.info ?? {}
            if (bytesMax < payloadBytesMin)
              throw new Error(
                `nats-server takes ${bytesMax} bytes in a message: max_payload must be ${payloadBytesMin} or more`
              )
            return { jsm, level }
          },
          catch: unavailable("JetStream")
        })
        const requests = makeRequests(nc)
        const store = makeGroupCommit(requests, nuid.next(), level >= groupCommitApiLevel)
        return Nats.of({ nc, jsm, js: jetstream(nc, { timeout: 5_000 }), ...requests, store })
      })
    )
}
