// A simulated browser subscription: keys, endpoint, the script of its push service, and its
// history.
import type { IncomingHttpHeaders } from "node:http"
import {
  makeReceiverKeys,
  openPush,
  type ReceiverKeys,
  senderKeyOf
} from "#cli/listen/push-receiver.ts"
import { type Answer, type AttemptStatus, playerOf, type Step } from "./push-script.ts"

/** The JSON of a browser's PushSubscription. */
export interface SubscriptionJson {
  readonly endpoint: string
  readonly expirationTime: null
  readonly keys: { readonly p256dh: string; readonly auth: string }
}

/** One push, decrypted; a push without a body has a `payload` of null and an empty `text`. */
export interface Received {
  readonly payload: Uint8Array | null
  readonly text: string
  /** The public key it was encrypted with (base64url); empty for a push without body. */
  readonly sender: string
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly headers: IncomingHttpHeaders
}

/** One request to the endpoint and how it was answered; `at` in milliseconds since the epoch. */
export interface Attempt {
  readonly status: AttemptStatus
  readonly at: number
}

export interface UserAgentOptions {
  /** One step a request, the last repeats; always 201 when left out. */
  readonly script?: ReadonlyArray<Step>
  /** Refuse pushes signed with any other VAPID key (base64url). */
  readonly applicationServerKey?: string
}

/**
 * A subscription and its history. A sink (`decrypt: false`) counts `deliveries` and leaves the
 * lists empty.
 */
export class UserAgent {
  readonly subscription: SubscriptionJson
  readonly applicationServerKey: string | undefined
  readonly received: Array<Received> = []
  readonly attempts: Array<Attempt> = []
  deliveries = 0
  /** When the last push was answered 2xx, milliseconds since the epoch; 0: never. */
  deliveredAt = 0
  unsubscribed = false
  nextAnswer: () => Answer
  readonly #keys: ReceiverKeys

  constructor(endpoint: string, options: UserAgentOptions) {
    this.#keys = makeReceiverKeys()
    this.subscription = {
      endpoint,
      expirationTime: null,
      keys: { p256dh: this.#keys.p256dh, auth: this.#keys.auth }
    }
    this.applicationServerKey = options.applicationServerKey
    this.nextAnswer = playerOf(options.script)
  }

  /** From now on the push service answers 410. */
  unsubscribe(): void {
    this.unsubscribed = true
  }

  /** From now on `choose` makes each answer; `next` makes the one that would come without it. */
  answerBy(choose: (next: () => Answer) => Answer): void {
    const next = this.nextAnswer
    this.nextAnswer = () => choose(next)
  }

  /** Decrypts and keeps one push. Throws when the body was not encrypted for this subscription. */
  receive(body: Buffer, headers: IncomingHttpHeaders): void {
    const payload = body.length === 0 ? null : openPush(this.#keys, body)
    const sender = payload === null ? "" : senderKeyOf(body)
    this.received.push({
      payload,
      text: payload?.toString() ?? "",
      sender,
      at: Date.now(),
      headers
    })
  }

  /** Forgets what arrived; the script goes on where it was. */
  forget(): void {
    this.received.length = 0
    this.attempts.length = 0
    this.deliveries = 0
    this.deliveredAt = 0
  }
}
