// One attempt at one push: encrypt, sign, post, judge the answer.
import { Clock, Context, Effect, Layer, Semaphore } from "effect"
import { Settings } from "#config"
import { ttlSecondsMax } from "#domain/broadcast.ts"
import type { BroadcastRef } from "#domain/job.ts"
import type { StoredSubscription } from "#domain/subscription.ts"
import type { UserToken } from "#streams/tokens.ts"
import { type Answer, type Classified, classify } from "./classify.ts"
import { PushClient } from "./post.ts"
import { makeRecipients } from "./recipients.ts"
import { seal } from "./seal.ts"
import { Vapid } from "./vapid.ts"

/** A push to be: one subscription of one user. */
export interface Target {
  readonly user: UserToken
  /** Id of the subscription. */
  readonly id: string
  readonly stored: StoredSubscription
}

export interface Attempted extends Classified {
  /** Absent when no answer came. */
  readonly status?: number
  readonly millis: number
}

export class Sender extends Context.Service<
  Sender,
  {
    /** Sends `padded` (see seal.ts; undefined: a push without payload). Never fails. */
    readonly send: (target: Target, ref: BroadcastRef, padded: Uint8Array | undefined) => Effect.Effect<Attempted>
    /** Lets at most `connectionsPerOrigin` of these run for one push service, so that a slow one does not hold up the others. */
    readonly inLane: (target: Target) => <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  }
>()("bellcast/delivery/Sender") {
  static readonly layer = Layer.effect(
    Sender,
    Effect.gen(function* () {
      const client = yield* PushClient
      const vapid = yield* Vapid
      const { connectionsPerOrigin } = yield* Settings
      const recipient = makeRecipients()
      const lanes = new Map<string, Semaphore.Semaphore>()

      const inLane = (target: Target) => {
        const origin = originOf(target)
        let lane = lanes.get(origin)
        if (lane === undefined) {
          lane = Semaphore.makeUnsafe(connectionsPerOrigin)
          lanes.set(origin, lane)
        }
        return lane.withPermit
      }

      const body = (target: Target, padded: Uint8Array | undefined): Uint8Array | undefined | { readonly error: string } => {
        if (padded === undefined) return undefined
        const { auth, p256dh } = target.stored.data.keys
        try {
          return seal(padded, recipient(p256dh, auth))
        } catch {
          // Checked at registration; this can only be a list written by other means.
          return { error: "ERR_CRYPTO_ECDH_INVALID_PUBLIC_KEY" }
        }
      }

      const send = Effect.fnUntraced(function* (target: Target, ref: BroadcastRef, padded: Uint8Array | undefined) {
        const origin = originOf(target)
        const host = new URL(origin).hostname
        const startedAt = yield* Clock.currentTimeMillis
        const sealed = body(target, padded)
        if (sealed !== undefined && "error" in sealed) return { ...classify(sealed, host, startedAt), millis: 0 }
        const headers: Record<string, string> = {
          // At least 1: WNS refuses 0 (webpush-go #66).
          ttl: String(Math.min(Math.max(1, Math.ceil((ref.expiresAt - startedAt) / 1000)), ttlSecondsMax)),
          urgency: ref.urgency,
          authorization: yield* vapid.authorization(origin)
        }
        if (ref.topic !== undefined) headers["topic"] = ref.topic
        if (sealed !== undefined) {
          headers["content-encoding"] = "aes128gcm"
          headers["content-type"] = "application/octet-stream"
        }
        const answer: Answer = yield* client.post({ origin, path: target.stored.data.endpoint.slice(origin.length), headers, body: sealed })
        const now = yield* Clock.currentTimeMillis
        return { ...classify(answer, host, now), ...("status" in answer ? { status: answer.status } : {}), millis: now - startedAt }
      })

      return Sender.of({ send, inLane })
    })
  )
}

/** Scheme, host and port, byte for byte as they stand in the endpoint: WNS tokens break when a URL is written anew (web-push-php #233). */
export const originOf = ({ stored }: Target): string => /^[a-z]+:\/\/[^/?#]+/.exec(stored.data.endpoint)?.[0] ?? "https://invalid.invalid"
