// The connection to NATS. Only src/nats/ uses the types of NATS clients.
import { randomUUID } from "node:crypto"
import { readFileSync } from "node:fs"
import { readFile } from "node:fs/promises"
import {
  type JetStreamClient,
  type JetStreamManager,
  jetstream,
  jetstreamManager
} from "@nats-io/jetstream"
import {
  type Authenticator,
  connect,
  createInbox,
  credsAuthenticator,
  type NatsConnection,
  nuid,
  type Status,
  type Subscription
} from "@nats-io/transport-node"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { textHmac } from "#basics/hmac.ts"
import { monotonicMillis } from "#clock/clocks.ts"
import { type NatsTlsFiles, natsUrls } from "#settings/addresses.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { whenReady } from "./again.ts"
import { attempt, NatsUnavailable } from "./errors.ts"
import { groupCommitApiLevel, makeGroupCommit, Silences, type Store } from "./group-commit.ts"
import { type Listening, listen, makeRequests, type Requests } from "./request.ts"
import { inWords, tlsOptions } from "./tls.ts"

/**
 * nats-server 2.14. In older servers a stream goes on after a failure of its disk (nats-server
 * #7788); before 2.11 they ignore TTLs silently.
 */
const apiLevelMin = 4
/** nats-server's default. All subscriptions of a user are one message in a bucket. */
const payloadBytesMin = 1024 ** 2
const requestMillis = 5_000

export interface NatsOptions {
  /** Comma-separated. A URL may hold user and password. */
  readonly url: string
  readonly credsFile?: string | undefined
  /** Only for tls:// URLs. */
  readonly tls?: NatsTlsFiles | undefined
  readonly name: string
  /** First tokens of the subjects of responses, which other users may not read. */
  readonly inboxPrefix?: string | undefined
  /** Under which name the account imports JetStream (`$JS.<domain>.API`). Unset: it has its own. */
  readonly jsDomain?: string | undefined
  /** How long to wait for a server, and then for JetStream's leader; unset: not at all. */
  readonly waitMillis?: number | undefined
  /**
   * A keyed hash, the same in all processes. NATS knows a `Nats-Msg-Id` across all subjects of a
   * stream: if a publisher could tell the id that a message of the service will have, he would take
   * it first, and the message would not be stored. Unset: with a key of this connection, for
   * processes that repeat nothing of others.
   */
  readonly messageIdOf?: ((text: string) => string) | undefined
}

export class Nats extends Context.Service<
  Nats,
  Requests & {
    readonly store: Store
    /** Passes each message on a subject to `receive`, until the subscription ends. */
    readonly listen: (listening: Omit<Listening, "failed">) => Subscription
    readonly silences: Silences
    /** The `Nats-Msg-Id` of a text. */
    readonly messageIdOf: (text: string) => string
    /** A new subject that this connection may subscribe to, and publish to. */
    readonly inbox: () => string
    /** How often it was connected anew: a server may have been killed meanwhile. */
    readonly reconnections: () => number
    /** What NATS refused to this connection last, in its words, and how long ago. */
    readonly refusal: () => { readonly reason: string; readonly millis: number } | undefined
    /** The servers of the URL, as URLs. */
    readonly servers: ReadonlyArray<string>
    readonly nc: NatsConnection
    readonly js: JetStreamClient
    readonly jsm: JetStreamManager
  }
>()("bellcast/nats/Nats") {
  /**
   * Connects, and refuses a server that is too old. Reconnects without end. Operations fail while
   * the connection is lost.
   */
  static readonly layer = (options: NatsOptions) =>
    Layer.effect(
      Nats,
      Effect.gen(function* () {
        const nc = yield* opened(options)
        const silences = new Silences()
        let refused: { readonly reason: string; readonly at: number } | undefined
        let reconnections = 0
        const seen: Seen = {
          refused: (reason) => {
            refused = { reason, at: performance.now() }
          },
          reconnected: () => {
            reconnections++
            silences.connected()
          }
        }
        yield* Effect.forkScoped(watchStatus(nc, seen))
        const { jsm, level } = yield* waitedFor(nc, options)
        const { inboxPrefix, jsDomain } = options
        const requests = makeRequests(nc, { inboxPrefix, jsDomain })
        const batches = level >= groupCommitApiLevel
        const run = Effect.runForkWith(yield* Effect.context<never>())
        const lost = makeRateLimitedLog("a message on NATS could not be handled", Effect.logError)
        const store = makeGroupCommit(requests, nuid.next(), batches, silences)
        return Nats.of({
          servers: natsUrls(options.url),
          nc,
          jsm,
          js: jetstream(nc, { timeout: requestMillis, ...domainOf(options) }),
          ...requests,
          store,
          listen: (listening) =>
            listen(nc, {
              ...listening,
              failed: (err) => void run(lost({ subject: listening.subject, err }))
            }),
          silences,
          messageIdOf: options.messageIdOf ?? idsOfThis(),
          inbox: () => createInbox(inboxPrefix),
          reconnections: () => reconnections,
          refusal: () =>
            refused && { reason: refused.reason, millis: performance.now() - refused.at }
        })
      })
    )
}

const idsOfThis = () => {
  const hmac = textHmac(randomUUID())
  return (text: string) => hmac(text, "base64url")
}

/** The hosts of the servers, without the passwords of the URLs: for logs. */
export const hostsOf = (url: string): string =>
  natsUrls(url)
    .map((one) => URL.parse(one)?.host ?? "(no URL)")
    .join(",")

const serversAndLogin = (url: string) => {
  const parsed = natsUrls(url).map((one) => new URL(one))
  const { password, username } = parsed[0]!
  const login =
    username === ""
      ? {}
      : password === ""
        ? { token: decodeURIComponent(username) }
        : { user: decodeURIComponent(username), pass: decodeURIComponent(password) }
  return { servers: parsed.map(({ host, protocol }) => `${protocol}//${host}`), ...login }
}

/** Reads the file again for every login: the operator may have replaced it. */
const credsOf = async (credsFile: string): Promise<Authenticator> => {
  const first = await readFile(credsFile).catch(({ code }: NodeJS.ErrnoException) => {
    throw new Error(`the credentials file ${credsFile} cannot be read: ${code}`)
  })
  let last = credsAuthenticator(first)
  return (nonce) => {
    try {
      const next = credsAuthenticator(readFileSync(credsFile))
      const login = next(nonce)
      last = next
      return login
    } catch {
      // The file is missing or half written. nats.js would close the connection for ever.
      return last(nonce)
    }
  }
}

const domainOf = ({ jsDomain }: NatsOptions) => (jsDomain === undefined ? {} : { domain: jsDomain })

/** Between two attempts of a start to connect. */
const dialAgain = "500 millis"

const open = ({ credsFile, inboxPrefix, name, tls = {}, url }: NatsOptions) =>
  Effect.tryPromise({
    try: async () =>
      connect({
        ...serversAndLogin(url),
        ...(await tlsOptions(url, tls)),
        ...(credsFile === undefined ? {} : { authenticator: await credsOf(credsFile) }),
        name,
        ...(inboxPrefix === undefined ? {} : { inboxPrefix }),
        maxReconnectAttempts: -1,
        // Else nats.js gives up when a server refuses the login twice. The operator may correct the
        // login meanwhile.
        ignoreAuthErrorAbort: true,
        reconnectTimeWait: 250,
        // A host that lost power does not close the connection. After two pings without a response
        // nats.js connects to another server.
        pingInterval: 5_000,
        timeout: 5_000,
        // Else nats.js captures two stacks for each request, in case it fails. `NatsUnavailable`
        // names the operation instead.
        noAsyncTraces: true
      }),
    catch: (cause) =>
      new NatsUnavailable({
        operation: "connect",
        reason: { _tag: "NotConnected" },
        cause: inWords(cause, url, tls)
      })
  })

/** Errors of a connection while nobody serves the address, as while a machine starts. */
const away = [
  ...["ECONNREFUSED", "ECONNRESET", "EHOSTUNREACH", "ENETUNREACH", "ETIMEDOUT"],
  ...["EAI_AGAIN", "ENOTFOUND"]
]

const isAway = (cause: unknown): boolean => {
  const { code, cause: inner } = cause as { readonly code?: unknown; readonly cause?: unknown }
  return away.includes(String(code)) || (inner instanceof Error && isAway(inner))
}

/**
 * Connects. A server that cannot be reached is tried again for `waitMillis`: a service may start
 * before its NATS. A refused login or certificate fails at once, as waiting mends neither.
 */
const opened = Effect.fnUntraced(function* (options: NatsOptions) {
  const { url, waitMillis = 0 } = options
  const warn = makeRateLimitedLog("NATS cannot be reached yet: the start waits")
  const until = (yield* monotonicMillis) + waitMillis
  while (true) {
    const result = yield* Effect.result(Effect.acquireRelease(open(options), close))
    if (result._tag === "Success") return result.success
    const { failure } = result
    const now = yield* monotonicMillis
    if (!isAway(failure.cause) || now >= until) return yield* failure
    const seconds = Math.round((until - now) / 1_000)
    yield* warn({ nats: hostsOf(url), reason: String(failure.cause), seconds })
    yield* Effect.sleep(dialAgain)
  }
})

/** Draining waits for the server, which may be gone: so give up after 2 s. */
const close = (nc: NatsConnection) =>
  Effect.tryPromise(() => nc.drain()).pipe(
    Effect.timeout("2 seconds"),
    Effect.ignore,
    Effect.andThen(Effect.promise(() => nc.close()))
  )

interface Dialled {
  readonly protocol?: { readonly servers: { getServers(): Array<{ lastConnect: number }> } }
}

/**
 * Lets nats.js dial at once. Between two dials it waits by the wall clock: an hour, where that was
 * set back by an hour since the last one.
 */
const forgetDials = (nc: NatsConnection): void => {
  const servers = (nc as unknown as Dialled).protocol?.servers.getServers() ?? []
  for (const server of servers) server.lastConnect = 0
}

interface Seen {
  readonly refused: (reason: string) => void
  readonly reconnected: () => void
}

/** Logs that the connection is lost or back, and errors that the server reports. */
const watchStatus = (nc: NatsConnection, { reconnected, refused: note }: Seen) => {
  const refused = makeRateLimitedLog("NATS refuses")
  const lost = makeRateLimitedLog("the connection to NATS is lost; it is tried again")
  const one = (status: Status) => {
    if (status.type === "reconnect") reconnected()
    if (status.type === "disconnect") {
      forgetDials(nc)
      return lost({ server: status.server })
    }
    if (status.type === "reconnect")
      return Effect.logInfo("the connection to NATS is back", { server: status.server })
    if (status.type !== "error") return Effect.void
    const { message: reason } = status.error
    note(reason)
    return refused({ reason })
  }
  return Stream.fromAsyncIterable(nc.status(), String).pipe(Stream.runForEach(one), Effect.ignore)
}

/** A server without JetStream says so at once: it will never be ready. */
const waitedFor = (nc: NatsConnection, options: NatsOptions) => {
  const { waitMillis = 0 } = options
  return waitMillis > 0 && nc.info?.jetstream === true
    ? whenReady("JetStream", checkServer(nc, options), waitMillis)
    : checkServer(nc, options)
}

const checkServer = (nc: NatsConnection, nats: NatsOptions) =>
  attempt("JetStream", async () => {
    // The types of nats.js lack `sendRequiredApiLevel` and `api.level`.
    const options = {
      timeout: requestMillis,
      sendRequiredApiLevel: true,
      ...domainOf(nats)
    }
    const jsm = await jetstreamManager(nc, options as Parameters<typeof jetstreamManager>[1])
    const { api } = await jsm.getAccountInfo()
    const level = (api as { level?: number }).level ?? 0
    if (level < apiLevelMin)
      throw new Error(
        `nats-server ${nc.info?.version} is too old: JetStream API level ${level}, ` +
          `needed ${apiLevelMin} (2.14)`
      )
    const { max_payload: bytesMax = 0 } = nc.info ?? {}
    if (bytesMax < payloadBytesMin)
      throw new Error(
        `nats-server takes ${bytesMax} bytes in a message: ` +
          `max_payload must be ${payloadBytesMin} or more`
      )
    return { jsm, level }
  })
