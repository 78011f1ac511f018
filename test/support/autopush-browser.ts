// What an autopush server knows of one browser (a UAID): its subscriptions, its socket, and the
// messages that it has not acknowledged.
import { randomBytes, randomUUID } from "node:crypto"
import type { WebSocket } from "ws"
import { UserAgent } from "./user-agent.ts"

/** What Firefox sends; which members there are depends on messageType. A ping is `{}`. */
export interface Frame {
  readonly messageType?: string
  readonly uaid?: string
  readonly channelID?: string
  /** base64url with padding. */
  readonly key?: string
  readonly code?: number
  readonly version?: string
  readonly updates?: ReadonlyArray<{
    readonly channelID: string
    readonly version: string
    readonly code: number
  }>
}

export interface Acknowledgement {
  readonly version: string
  /**
   * 100: given to the worker. 101: could not be decrypted. 102: not delivered. 301 to 303: the
   * worker failed.
   */
  readonly code: number
}

export interface Subscription {
  readonly browser: Browser
  readonly channelID: string
  /** Endpoint, VAPID key and history. Its keys are not used: only the browser can decrypt. */
  readonly agent: UserAgent
}

export class Browser {
  readonly uaid = randomUUID().replaceAll("-", "")
  readonly subscriptions = new Map<string, Subscription>()
  /** By version, oldest first. */
  readonly unacknowledged = new Map<string, object>()
  readonly acknowledgements: Array<Acknowledgement> = []
  readonly #origin: string
  socket: WebSocket | undefined
  retired = false

  /** `origin`: where its endpoints are. */
  constructor(origin: string) {
    this.#origin = origin
  }

  /** Answers everything but hello. */
  hear({
    channelID = "",
    code = 0,
    key,
    messageType = "ping",
    updates = [],
    version = ""
  }: Frame): void {
    if (messageType === "register") {
      const { agent } = this.#register(channelID, key)
      this.#send({ messageType, channelID, status: 200, pushEndpoint: agent.subscription.endpoint })
    } else if (messageType === "unregister") {
      this.#unregister(channelID)
      this.#send({ messageType, channelID, status: 200 })
    } else if (messageType === "ack") for (const update of updates) this.#acknowledge(update)
    else if (messageType === "nack") this.#acknowledge({ version, code })
    else if (messageType === "ping") this.#send({})
  }

  /**
   * A new subscription, or the one that this channel has already: around a reconnect Firefox sends
   * the request twice and keeps the first response.
   */
  #register(channelID: string, key: string | undefined): Subscription {
    const known = this.subscriptions.get(channelID)
    if (known !== undefined && !known.agent.unsubscribed) return known
    const applicationServerKey =
      key === undefined
        ? {}
        : { applicationServerKey: Buffer.from(key, "base64url").toString("base64url") }
    const agent = new UserAgent(
      `${this.#origin}/wpush/v2/${randomBytes(120).toString("base64url")}`,
      applicationServerKey
    )
    const subscription = { browser: this, channelID, agent }
    this.subscriptions.set(channelID, subscription)
    return subscription
  }

  #unregister(channelID: string): void {
    this.subscriptions.get(channelID)?.agent.unsubscribe()
  }

  #acknowledge({ version, code }: Acknowledgement): void {
    this.unacknowledged.delete(version)
    this.acknowledgements.push({ version, code })
  }

  /** From now on all its endpoints answer 410 and its UAID is unknown. */
  retire(): void {
    this.retired = true
    for (const channelID of this.subscriptions.keys()) this.#unregister(channelID)
    this.unacknowledged.clear()
  }

  /**
   * Sends a message now, or after the next hello. A message with TTL 0 is sent now or never (RFC
   * 8030 section 5.2).
   */
  push(channelID: string, body: Buffer, ttlSeconds: number): string {
    const version = randomUUID()
    const content =
      body.length === 0
        ? {}
        : { data: body.toString("base64url"), headers: { encoding: "aes128gcm" } }
    const frame = { messageType: "notification", channelID, version, ttl: ttlSeconds, ...content }
    if (this.socket !== undefined || ttlSeconds > 0) this.unacknowledged.set(version, frame)
    this.#send(frame)
    return version
  }

  #send(frame: object): void {
    this.socket?.send(JSON.stringify(frame))
  }

  /** The answer to hello, and everything that waited for it. */
  greet(socket: WebSocket): void {
    this.socket = socket
    this.#send({
      messageType: "hello",
      uaid: this.uaid,
      status: 200,
      use_webpush: true,
      broadcasts: {}
    })
    for (const frame of this.unacknowledged.values()) this.#send(frame)
  }
}
