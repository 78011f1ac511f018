// A push as its push service sees it.

/** The push that is about to be sent, or got a response. Its times are of the monotonic clock. */
export interface Push {
  /** Tells the subscriptions of this push service apart. */
  readonly subscription: string
  readonly user: string
  /** Sequences in LOG: of the command that stored the subscription, and of the broadcast. */
  readonly generation: number
  readonly broadcast: number
  /** Whether the last response to this push was "gone" and not believed. */
  readonly saidGone: boolean
  /** When its broadcast was accepted. */
  readonly acceptedAt: number
  /** When its subscription was stored. */
  readonly storedAt: number
  readonly sentAt: number
}
