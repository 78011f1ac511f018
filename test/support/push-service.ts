// A push service on loopback for tests and benches. It checks requests as strictly as the strictest
// real one, verifies VAPID, decrypts messages, follows a script per subscription, and records all
// requests.
import { randomBytes } from "node:crypto"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { createServer as createTlsServer } from "node:https"
import type { AddressInfo } from "node:net"
import type { Certificate } from "./certificates.ts"
import { Condition } from "./condition.ts"
import { startDistance } from "./distance.ts"
import { readBody, refusalOf } from "./push-checks.ts"
import { type Answer, delivers, refuse } from "./push-script.ts"
import { type Http2Options, http2Server } from "./push-service-http2.ts"
import { testCertificate } from "./tls.ts"
import { UserAgent, type UserAgentOptions } from "./user-agent.ts"

export interface Site {
  readonly name: string
  readonly address: string
  /** PEM texts. */
  readonly certificate: Certificate
}

export interface PushServiceOptions extends Http2Options {
  /** Serve https with the certificate of tls.ts. */
  readonly tls?: boolean
  /** With `tls`: speak HTTP/2 to those who can, within the other options of HTTP/2. */
  readonly http2?: boolean
  /** Milliseconds that a request and its answer travel together: see distance.ts. */
  readonly roundTripMillis?: number
  /** 0, the default, takes a free port. */
  readonly port?: number
  /** The host in endpoints; `localhost` for senders that refuse IP literals. Default 127.0.0.1. */
  readonly host?: "127.0.0.1" | "localhost"
  /** Serve https by this name at this address, port 443, for senders in other networks. */
  readonly site?: Site
  /** False makes it a sink for benches: no checks, no decryption, only counts. */
  readonly decrypt?: boolean
}

/** Something the sender did that a push service or browser must refuse. */
export interface Fault {
  readonly endpoint: string
  readonly status: number
  readonly reason: string
}

export interface Counts {
  /** All requests, refused ones included. */
  readonly requests: number
  /** Requests answered 2xx: `total = distinct + duplicates`. */
  readonly total: number
  /** Subscriptions that got at least one push. */
  readonly distinct: number
  /** Pushes to a subscription after its first. */
  readonly duplicates: number
}

export interface PushService extends AsyncDisposable {
  /** Scheme, host and port: the `aud` that it accepts. */
  readonly origin: string
  readonly requests: number
  readonly counts: Counts
  /** What the sender did wrong, oldest first; a good run leaves it empty. */
  readonly faults: ReadonlyArray<Fault>
  readonly agents: ReadonlyArray<UserAgent>
  /** Different tokens (VAPID) since the start or the last reset. */
  readonly tokens: number
  /** When each push answered 2xx was read, milliseconds since the epoch. */
  readonly deliveredAt: ReadonlyArray<number>
  /** A new browser subscription. Throws on a script it cannot parse. */
  readonly subscribe: (options?: UserAgentOptions) => UserAgent
  /**
   * Resolves now, or after the request that makes the predicate true; rejects after the timeout.
   */
  readonly waitFor: (
    predicate: (service: PushService) => boolean,
    timeoutMillis?: number
  ) => Promise<void>
  /** Over TLS only: from now on handshakes fail, or (`false`) work again. Open connections stay. */
  readonly breakTls: (broken: boolean) => void
  /** Over HTTP/2 only: sessions end after their responses, and new connections get HTTP/1.1. */
  readonly fallBack: () => void
  /** With `roundTripMillis`: the oldest connection falls silent and stays open. */
  readonly stallOne: () => void
  /** With `roundTripMillis`: connections since the start. */
  readonly connections: () => number
  /** Closes every connection: who sends again has to connect, and so to resolve the name. */
  readonly disconnect: () => void
  /** Sets counts, faults and histories to zero; subscriptions and script positions stay. */
  readonly reset: () => void
}

const listen = (server: ReturnType<typeof createServer>, port: number, address = "127.0.0.1") =>
  new Promise<number>((resolve, reject) => {
    server
      .once("error", reject)
      .listen(port, address, () => resolve((server.address() as AddressInfo).port))
  })

/** Starts a simulator; dispose of it with `await using`. Rejects when the port is taken. */
export const startPushService = async (options: PushServiceOptions = {}): Promise<PushService> => {
  const { decrypt = true, http2 = false, site } = options
  const { host = "127.0.0.1", port = site ? 443 : 0, tls = site !== undefined } = options
  const agents = new Map<string, UserAgent>()
  const condition = new Condition<PushService>(() => service)
  const faults: Array<Fault> = []
  const tokens = new Set<string | undefined>()
  const deliveredAt: Array<number> = []
  let counts = { requests: 0, total: 0, distinct: 0, duplicates: 0 }

  const refuseFaulty = (agent: UserAgent, status: number, reason: string): Answer => {
    faults.push({ endpoint: agent.subscription.endpoint, status, reason })
    return refuse(status, reason)
  }

  const judge = async (
    agent: UserAgent,
    request: IncomingMessage,
    body: Buffer
  ): Promise<Answer> => {
    if (!decrypt) return agent.unsubscribed ? refuse(410, "unsubscribed") : agent.nextAnswer()
    tokens.add(request.headers.authorization)
    const refusal = await refusalOf(agent, request, body, service.origin)
    if (refusal)
      return refusal.fault
        ? refuseFaulty(agent, refusal.status, refusal.reason)
        : refuse(refusal.status, refusal.reason)
    const answer = agent.nextAnswer()
    try {
      if (delivers(answer)) agent.receive(body, request.headers)
      return answer
    } catch (error) {
      // A real push service cannot see this and responds 201. Here it must not go unnoticed.
      return refuseFaulty(agent, 400, `cannot be decrypted: ${String(error)}`)
    }
  }

  const count = (agent: UserAgent, answer: Answer) => {
    if (decrypt) agent.attempts.push({ status: answer.status, at: Date.now() })
    if (!delivers(answer)) return
    agent.deliveredAt = performance.timeOrigin + performance.now()
    deliveredAt.push(agent.deliveredAt)
    counts.total += 1
    counts[agent.deliveries++ === 0 ? "distinct" : "duplicates"] += 1
  }

  const answerTo = async (
    agent: UserAgent | undefined,
    request: IncomingMessage,
    body: Buffer
  ): Promise<Answer> => {
    if (!agent) return refuse(404, "no such subscription")
    if (request.method !== "POST") return refuse(405, "a push is a POST")
    const answer = await judge(agent, request, body)
    count(agent, answer)
    return answer
  }

  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    counts.requests += 1
    const body = await readBody(request, decrypt)
    const answer = await answerTo(agents.get(request.url ?? ""), request, body)
    answer.play(request, response)
    condition.changed()
  }

  // A sender that goes away in the middle of its body is its own business: it has not sent a push.
  const onRequest = (request: IncomingMessage, response: ServerResponse) =>
    void handle(request, response).catch(() => response.destroy())
  const server = http2
    ? http2Server(options, onRequest)
    : tls
      ? createTlsServer(site?.certificate ?? testCertificate(), onRequest)
      : createServer(onRequest)
  // Longer than any pause of a test: an idle connection must not close as the sender uses it again.
  server.keepAliveTimeout = 10 * 60_000

  const own = await listen(server, port, site?.address)
  const { roundTripMillis } = options
  const distance =
    roundTripMillis === undefined ? undefined : await startDistance(own, roundTripMillis)

  const service: PushService = {
    origin: site
      ? `https://${site.name}`
      : `${tls ? "https" : "http"}://${host}:${distance?.port ?? own}`,
    faults,
    deliveredAt,
    get requests() {
      return counts.requests
    },
    get tokens() {
      return tokens.size
    },
    get counts() {
      return { ...counts }
    },
    get agents() {
      return [...agents.values()]
    },
    subscribe: (agentOptions = {}) => {
      // As long and unguessable as the real ones (RFC 8030 section 8.3).
      const path = `/wpush/v2/${randomBytes(120).toString("base64url")}`
      const agent = new UserAgent(service.origin + path, agentOptions)
      agents.set(path, agent)
      return agent
    },
    waitFor: (predicate, timeoutMillis = 30_000) =>
      condition.waitFor(predicate, timeoutMillis, () =>
        JSON.stringify({ ...counts, faults: faults.slice(0, 5) })
      ),
    // Without a certificate there is no cipher to agree on.
    breakTls: (broken) =>
      "setSecureContext" in server && server.setSecureContext(broken ? {} : testCertificate()),
    fallBack: () => "fallBack" in server && (server.fallBack as () => void)(),
    stallOne: () => distance?.stallOne(),
    connections: () => distance?.connections() ?? Number.NaN,
    disconnect: () => server.closeAllConnections(),
    reset: () => {
      counts = { requests: 0, total: 0, distinct: 0, duplicates: 0 }
      faults.length = 0
      tokens.clear()
      deliveredAt.length = 0
      for (const agent of agents.values()) agent.forget()
    },
    [Symbol.asyncDispose]: async () => {
      await distance?.[Symbol.asyncDispose]()
      await new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
    }
  }
  return service
}
