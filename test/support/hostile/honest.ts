// An honest client: it subscribes, registers, lists, publishes and asks for the heartbeat, one
// request after the other, and keeps how long each took and which failed.
import { Agent, request } from "node:http"
import { makeReceiverKeys } from "#cli/listen/push-receiver.ts"

export interface Exchange {
  readonly status: number
  readonly text: string
  readonly millis: number
}

export interface Ask {
  readonly method: string
  readonly path: string
  readonly user?: string
  readonly body?: unknown
}

export interface Latencies {
  readonly requests: number
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
  readonly max: number
}

export const summaryOf = (millis: ReadonlyArray<number>): Latencies => {
  const sorted = millis.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)] ?? Number.NaN
  return { requests: sorted.length, p50: at(0.5), p99: at(0.99), max: at(1) }
}

const { auth, p256dh } = makeReceiverKeys()
const timeoutMillis = 30_000
/** Connections that the honest client keeps open, at most. */
export const honestConnectionsMax = 4

/** Sends one request over a kept-alive connection. Status 0: no answer came; the text says why. */
const send = (agent: Agent, base: URL, { body, method, path, user }: Ask): Promise<Exchange> =>
  new Promise((resolve) => {
    const text = body === undefined ? undefined : JSON.stringify(body)
    const start = performance.now()
    const end = (status: number, text: string) =>
      resolve({ status, text, millis: performance.now() - start })
    const credentials = Buffer.from(`${user}:secret`).toString("base64")
    const headers = {
      ...(user === undefined ? {} : { authorization: `Basic ${credentials}` }),
      "content-type": "application/json",
      "content-length": Buffer.byteLength(text ?? "")
    }
    const { hostname, port } = base
    const options = { agent, hostname, port, method, path: `${base.pathname}${path}`, headers }
    const outgoing = request({ ...options, timeout: timeoutMillis }, (incoming) => {
      let received = ""
      incoming.setEncoding("utf8").on("data", (part: string) => {
        received += part
      })
      incoming.on("end", () => end(incoming.statusCode ?? 0, received))
      incoming.on("error", (error) => end(0, String(error)))
    })
    outgoing.on("timeout", () => outgoing.destroy(new Error(`not in ${timeoutMillis} ms`)))
    outgoing.on("error", (error) => end(0, String(error)))
    outgoing.end(text)
  })

/** A round of requests of one user, with the statuses that are a success. */
const roundOf = (user: string, endpoint: string) =>
  [
    { path: "/__lbheartbeat__", method: "GET", expected: [200] },
    {
      path: "/subscriptions",
      method: "POST",
      user,
      body: { data: { endpoint, keys: { auth, p256dh } } },
      expected: [200, 201]
    },
    { path: "/channels/honest/registration", method: "PUT", user, expected: [202] },
    { path: "/subscriptions", method: "GET", user, expected: [200] },
    { path: "/channels/honest", method: "POST", user, body: { data: { n: 1 } }, expected: [202] },
    { path: "/__heartbeat__", method: "GET", expected: [200] }
  ] as const

export interface HonestOptions {
  /** `http://127.0.0.1:PORT/v1` */
  readonly url: string
  /** Subscriptions to store; each round takes the next, again from the first after the last. */
  readonly endpoints: ReadonlyArray<string>
}

export class Honest {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: honestConnectionsMax })
  readonly #base: URL
  readonly #endpoints: ReadonlyArray<string>
  #rounds = 0
  /** Since the last `take`. */
  #millis: Array<number> = []
  /** Every request that failed, in words. */
  readonly failures: Array<string> = []

  constructor({ endpoints, url }: HonestOptions) {
    this.#base = new URL(url)
    this.#endpoints = endpoints
  }

  /** The milliseconds of each request since the last call. */
  takeMillis(): ReadonlyArray<number> {
    const millis = this.#millis
    this.#millis = []
    return millis
  }

  /** The latencies since the last call. */
  take(): Latencies {
    return summaryOf(this.takeMillis())
  }

  /** One request, which counts among the latencies but never as a failure. */
  async send(ask: Ask): Promise<Exchange> {
    const exchange = await send(this.#agent, this.#base, ask)
    this.#millis.push(exchange.millis)
    return exchange
  }

  /** One round of requests. */
  async round(): Promise<void> {
    const n = this.#rounds++ % this.#endpoints.length
    for (const { expected, ...ask } of roundOf(`honest${n}`, this.#endpoints[n]!)) {
      const { status, text } = await this.send(ask)
      if (!(expected as ReadonlyArray<number>).includes(status))
        this.failures.push(`${ask.method} ${ask.path}: ${status} ${text.slice(0, 200)}`)
    }
  }

  /** Rounds one after the other, until the signal. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) await this.round()
  }

  close(): void {
    this.#agent.destroy()
  }
}
