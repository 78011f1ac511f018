// Requests to the service: by whom they are sent, how long they may take, and which error a failed
// one is. The contract of each request: test/conformance/README.md.
import { answerMillis, type Waits } from "../device/time.ts"
import type { ConnectOptions } from "../types/client.d.ts"
import type { SubscriptionData } from "./browser.ts"
import { BellcastError, failAs } from "./errors.ts"

/** Errno of a 409: another user holds the endpoint, with other keys. */
const heldByAnother = 123

interface Body<T> {
  readonly data?: T
  readonly code?: number
  readonly errno?: number
  /** The secret by which a worker renews a subscription without a login. */
  readonly renewal?: string
}

interface Answer<T> {
  readonly status: number
  readonly headers: Headers
  readonly body: Body<T> | null
}

interface RequestOptions {
  readonly body?: object
  readonly headers?: { readonly [name: string]: string }
  /** Statuses and errnos of errors that the caller handles. */
  readonly accepts?: ReadonlyArray<number>
  readonly keepalive?: boolean
  /** Sent without a login. */
  readonly isPublic?: boolean
  /** Sent for the second time, with a new token. */
  readonly isAgain?: boolean
}

/** A subscription as the service has it. */
export interface StoredSubscription extends SubscriptionData {
  readonly id: string
}

/** The service's answer to a subscription that it was given. */
export type Stored =
  | { readonly isHeld: true }
  | {
      readonly isHeld: false
      /** Undefined: there is no new secret. */
      readonly renewal: string | undefined
      /** 201, or 404 for the former one: the service did not have it. */
      readonly isNew: boolean
      readonly subscription: StoredSubscription | undefined
    }

export class Service {
  /** The address, without a slash at the end. */
  readonly api: string
  readonly #token: ConnectOptions["token"]
  readonly #waits: Waits
  #authorization: string | undefined
  #key: Promise<Answer<{ readonly vapid_public_key: string }>> | undefined

  /** Throws TypeError where `url` is none. */
  constructor({ token, url }: ConnectOptions, waits: Waits) {
    this.api = new URL(url, location.href).href.replace(/\/+$/, "")
    this.#token = token
    this.#waits = waits
  }

  /** The VAPID key that new subscriptions are made with. */
  async publicKey(): Promise<string> {
    this.#key ??= this.#request("GET", "/vapid-public-key", { isPublic: true })
    return (await this.#key).body!.data!.vapid_public_key
  }

  /** The next `publicKey` asks again. */
  forgetPublicKey(): void {
    this.#key = undefined
  }

  /** Stores a subscription of the user, maybe in the place of a former one. */
  async store(
    data: SubscriptionData,
    former: string | undefined,
    wantsRenewal: boolean
  ): Promise<Stored> {
    const replaces = former && former !== data.endpoint ? await idOf(former) : undefined
    const { body, status } = await this.#request<StoredSubscription>("POST", "/subscriptions", {
      // 404: the service does not know the former one any more.
      accepts: replaces ? [heldByAnother, 404] : [heldByAnother],
      body: { data, replaces },
      headers: wantsRenewal ? { prefer: "renewal" } : {}
    })
    if (status === 409) return { isHeld: true }
    const { data: subscription, renewal } = body ?? {}
    return { isHeld: false, isNew: status > 200, renewal, subscription }
  }

  /** Changes a stored subscription to what the browser has. A label of the site's stays. */
  async update(stored: StoredSubscription, data: SubscriptionData): Promise<void> {
    const path = `/subscriptions/${stored.id}`
    const label = stored.label ?? data.label
    await this.#request("PUT", path, { body: { data: { ...stored, ...data, label } } })
  }

  /** Makes a subscription by a former key the user's. False: the service does not take that key. */
  async take(data: SubscriptionData): Promise<boolean> {
    const accepts = [400, 403, heldByAnother]
    return isOk(await this.#request("POST", "/subscriptions", { body: { data }, accepts }))
  }

  /** Whether the service has the subscription for this user. */
  async has(endpoint: string): Promise<boolean> {
    const path = `/subscriptions/${await idOf(endpoint)}`
    return isOk(await this.#request("GET", path, { accepts: [404] }))
  }

  /** The request goes on when the page is left, as after a logout. */
  async remove(endpoint: string): Promise<void> {
    const path = `/subscriptions/${await idOf(endpoint)}`
    await this.#request("DELETE", path, { accepts: [404], keepalive: true })
  }

  async join(channel: string): Promise<void> {
    await this.#request("PUT", registrationOf(channel))
  }

  async leave(channel: string): Promise<void> {
    await this.#request("DELETE", registrationOf(channel))
  }

  /** The channels of the user, of all pages of the list. */
  async channels(): Promise<Array<string>> {
    const names: Array<string> = []
    for (let next: string | null = this.api; next; ) {
      // Only the query counts: behind a proxy the service may not know its own address.
      const { search } = new URL(next)
      const { body, headers }: Answer<ReadonlyArray<{ readonly id: string }>> = await this.#request(
        "GET",
        `/registrations${search}`
      )
      for (const { id } of body!.data!) names.push(id)
      next = headers.get("next-page")
    }
    return names
  }

  async #request<T>(
    method: string,
    path: string,
    options: RequestOptions = {}
  ): Promise<Answer<T>> {
    const { accepts = [], isAgain, isPublic } = options
    if (!isPublic) this.#authorization ??= await this.#login()
    const authorization = isPublic ? undefined : this.#authorization
    const response = await this.#send(method, path, options, authorization)
    const body = await this.#waits.for<Body<T>>(response.json()).catch(() => null)
    const { headers, ok, status } = response
    if (status === 401 && authorization) {
      this.#authorization = undefined
      if (!isAgain) return this.#request(method, path, { ...options, isAgain: true })
    }
    const isAccepted = accepts.includes(status) || accepts.includes(body?.errno ?? 0)
    if (!ok && !isAccepted) throw errorOf(response)
    // A network that wants a login may answer 200 with its own page.
    if (ok && !(body?.data ?? body?.code)) throw new BellcastError("service", true, status)
    return { body, headers, status }
  }

  #send(
    method: string,
    path: string,
    { body, headers, keepalive = false }: RequestOptions,
    authorization: string | undefined
  ): Promise<Response> {
    const sent = fetch(this.api + path, {
      method,
      headers: {
        ...(authorization && { authorization }),
        ...(method !== "GET" && { "content-type": "application/json" }),
        ...headers
      },
      ...(body && { body: JSON.stringify(body) }),
      // Without tokens, cookies tell a proxy in front who the user is.
      credentials: this.#token ? "omit" : "same-origin",
      signal: AbortSignal.timeout(answerMillis),
      keepalive
    })
    return this.#waits.for(sent).catch(failAs("offline"))
  }

  /** The `Authorization` of the user; undefined where the site gives no tokens. */
  async #login(): Promise<string | undefined> {
    const token = this.#token
    if (!token) return
    // `fetch` rejects with a TypeError where there is no network.
    const failed = (cause: unknown) =>
      failAs(cause instanceof TypeError ? "offline" : "token")(cause)
    const asked = async () => String((await token()) ?? "").trim()
    const text = await this.#waits.for(asked().catch(failed)).catch(failAs("offline"))
    if (/^[\w.~+/=-]+$/.test(text)) return `Bearer ${text}`
    if (/^\w+ [!-~]+$/.test(text)) return text
    throw new BellcastError("login")
  }
}

const isOk = ({ status }: Answer<unknown>): boolean => status < 300

const codes = {
  401: "login",
  403: "forbidden",
  413: "limit",
  429: "limit",
  502: "offline",
  503: "offline",
  504: "offline",
  507: "limit"
} as const

const errorOf = ({ headers, status }: Response): BellcastError => {
  const retryAfter = headers.get("retry-after")
  const isRetryable = retryAfter !== null || status >= 500
  const code = codes[status as keyof typeof codes] ?? "service"
  return new BellcastError(code, isRetryable, status, Number(retryAfter))
}

/** The id of a subscription: the hash of its endpoint, of which Google has two spellings. */
const idOf = async (endpoint: string): Promise<string> => {
  const text = JSON.stringify(endpoint.replace(/(\/fcm.googleapis.com).wp/, "$1/fcm/send"))
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))
  return [...new Uint8Array(hash)].map((byte) => byte.toString(16).padStart(2, "0")).join("")
}

/** Throws for a name that no path can have; the service would refuse it, too. */
const registrationOf = (channel: string): string => {
  try {
    // Browsers take dots for folders, and lone surrogates cannot be encoded.
    if (!/^\.{0,2}$/.test(channel)) return `/channels/${encodeURIComponent(channel)}/registration`
  } catch {}
  throw new BellcastError("service", false, 400)
}
