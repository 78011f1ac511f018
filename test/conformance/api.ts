// The tools of cases: requests as a user of their own, and the objects that most cases need.
import { createECDH, randomBytes } from "node:crypto"
import { subscriptionExample } from "#gateway/subscriptions/form.ts"
import { exchange, type HttpResponse } from "./http.ts"
import type { Login, Users } from "./logins/login.ts"

export interface Target {
  /** The policy of the server, and its users. */
  readonly login: Login
  readonly users: Users
  /** Scheme, host and port. */
  readonly origin: string
  /** `user:password` of a publisher. */
  readonly publisher: string
  /** `user:password` of an operator, who has no other right. */
  readonly operator: string
  /** The server's userid_hmac_secret. */
  readonly secret: string
  /** The origin of allowed endpoints. */
  readonly pushOrigin: string
  /** Whether processes of all roles run. */
  readonly isWhole: boolean
}

export interface Request {
  readonly method: string
  /** The path after the version prefix. */
  readonly path?: string
  /** The whole request target, instead of `path`. */
  readonly target?: string
  /** `user:password`; null: no credentials. Unset: the user of this case. */
  readonly as?: string | null
  /** Objects are sent as JSON with Content-Type; text and bytes unchanged. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

export interface Subscription {
  readonly endpoint: string
  readonly keys: { readonly auth: string; readonly p256dh: string }
  readonly [extra: string]: unknown
}

const point = () => {
  const ecdh = createECDH("prime256v1")
  ecdh.generateKeys()
  return ecdh.getPublicKey("base64url")
}
/**
 * All cases share a key pair, because making one takes longer than a case. The pair is the one of
 * RFC 8291 section 5: another run against the same server stores some of the same endpoints, and a
 * user may store the endpoint of another user only with the same keys.
 */
export const { keys } = subscriptionExample.data
export const otherKeys = { auth: randomBytes(16).toString("base64url"), p256dh: point() }

export class Api {
  readonly target: Target
  readonly me = `user-${randomBytes(6).toString("hex")}:secret`
  /** The id of this case's own channel, as part of a path. */
  readonly channel = `c-${randomBytes(6).toString("hex")}`

  constructor(target: Target) {
    this.target = target
  }

  get root(): string {
    return `${this.target.origin}/v1`
  }

  async send(sent: Request): Promise<HttpResponse> {
    const { as, body, headers = {}, method, path = "/", target } = sent
    const who = as === undefined ? this.me : as
    const isText = typeof body === "string" || Buffer.isBuffer(body)
    return exchange(this.target.origin, {
      method,
      target: target ?? `/v1${path}`,
      headers: {
        ...(who === null ? {} : await this.headersOf(who)),
        ...(body === undefined || isText ? {} : { "content-type": "application/json" }),
        ...headers
      },
      ...(body === undefined
        ? {}
        : { body: isText ? (body as string | Buffer) : JSON.stringify(body) })
    })
  }

  subscription(name = "a", extra: Readonly<Record<string, unknown>> = {}): Subscription {
    return { endpoint: `${this.target.pushOrigin}/${this.channel}/${name}`, keys, ...extra }
  }

  /** Stores a subscription, and returns the stored object. */
  async stored(
    name = "a",
    extra: Readonly<Record<string, unknown>> = {},
    as?: string
  ): Promise<StoredObject> {
    const { json, status, text } = await this.send({
      method: "POST",
      path: "/subscriptions",
      body: { data: this.subscription(name, extra) },
      ...(as === undefined ? {} : { as })
    })
    if (status !== 201) throw new Error(`POST /subscriptions: ${status}: ${text}`)
    return json.data as StoredObject
  }

  async removed(id: string): Promise<number> {
    const { json, status, text } = await this.send({
      method: "DELETE",
      path: `/subscriptions/${id}`
    })
    if (status !== 200) throw new Error(`DELETE: ${status}: ${text}`)
    return json.data.last_modified as number
  }

  async registered(channel = this.channel, as?: string): Promise<void> {
    const { status, text } = await this.send({
      method: "PUT",
      path: `/channels/${channel}/registration`,
      ...(as === undefined ? {} : { as })
    })
    if (status !== 202) throw new Error(`PUT registration: ${status}: ${text}`)
  }

  list(query = "", headers: Readonly<Record<string, string>> = {}): Promise<HttpResponse> {
    return this.send({ method: "GET", path: `/subscriptions${query}`, headers })
  }

  /** The headers by which a user is known. */
  headersOf(user: string): Promise<Readonly<Record<string, string>>> {
    return this.target.users.headersOf(user)
  }

  userId(user = this.me): string {
    return this.target.users.idOf(user)
  }
}

export interface StoredObject extends Subscription {
  readonly id: string
  readonly last_modified: number
}
