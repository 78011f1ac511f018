// One attempt at one push: encrypt, sign, post, judge the answer.
import { Clock, Context, Effect, Layer } from "effect"
import { Settings } from "#config"
import { ttlSecondsMax } from "#domain/broadcast.ts"
import { checkEndpoint } from "#domain/endpoint.ts"
import { type BroadcastRef, throttledBaseMillis } from "#domain/job.ts"
import type { StoredReason } from "#domain/reason.ts"
import type { StoredSubscription } from "#domain/subscription.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import type { UserToken } from "#streams/tokens.ts"
import { massGone, type PushService } from "../push-service/push-service.ts"
import { PushServices } from "../push-service/push-services.ts"
import type { Attempt, ResponseResult } from "./attempt-result.ts"
import { classify, type PushResponse } from "./classify.ts"
import { PushClient } from "./client.ts"
import { type KeyPair, makePairs, type Recipient, recipientOf, seal } from "./encrypt.ts"
import { Vapid } from "./vapid.ts"

/** A push to be: one subscription of one user. */
export interface Target {
  readonly user: UserToken
  /** Id of the subscription. */
  readonly id: string
  readonly stored: StoredSubscription
  /** Its keys, decoded when first used: that costs 35 us, as much as a third of encrypting. */
  recipient?: Recipient
}

/** A body ready to be sent: encrypted, without payload, or one that cannot be made. */
export type Sealed = Uint8Array | undefined | { readonly error: string }

/** The one second try, at once, that some answers deserve; a 421 has closed its connection (see post.ts). */
const secondTryOf = (
  lane: PushService,
  classified: ResponseResult,
  answer: PushResponse,
  now: number
) => {
  if (classified.kind === "accepted" || "error" in answer) return undefined
  if (lane.doubtsToken(classified, now)) return "new-token"
  if (classified.reason === "bad-topic") return "without-topic"
  return answer.status === 421 ? "other-connection" : undefined
}

export class Sender extends Context.Service<
  Sender,
  {
    /**
     * Encrypts `padded`, the payload of one broadcast (see seal.ts; undefined: pushes without payload), for
     * each target of one batch. Two targets of one user never share a key pair.
     */
    readonly seal: (
      targets: ReadonlyArray<Target>,
      padded: Uint8Array | undefined
    ) => ReadonlyArray<Sealed>
    /**
     * One attempt; never fails. At most `pushesUnderWayMax` run for one push service, so that a slow one does not hold up the others;
     * `turn` is run when it is this push's turn, before anything is sent; when it fails, nothing is.
     * `lastReason`: the reason of its last recorded outcome.
     */
    readonly send: <E>(
      target: Target,
      ref: BroadcastRef,
      bodyOf: () => Sealed,
      turn: Effect.Effect<unknown, E>,
      lastReason?: StoredReason
    ) => Effect.Effect<Attempt, E>
  }
>()("bellcast/delivery/Sender") {
  static readonly layer = Layer.effect(
    Sender,
    Effect.gen(function* () {
      const client = yield* PushClient
      const vapid = yield* Vapid
      const lanes = yield* PushServices
      const log = yield* EventLog
      const settings = yield* Settings
      const policy = { hosts: settings.pushHosts, allowLoopback: settings.allowLoopbackEndpoints }

      const sealOne = (target: Target, padded: Uint8Array, pair: KeyPair): Sealed => {
        const { auth, p256dh } = target.stored.data.keys
        try {
          target.recipient ??= recipientOf(p256dh, auth)
        } catch {
          // Checked at registration; this can only be a list written by other means.
          return { error: "ERR_CRYPTO_ECDH_INVALID_PUBLIC_KEY" }
        }
        try {
          return seal(padded, target.recipient, pair)
        } catch {
          // Ours, not the subscription's: it must not cost anybody their place.
          return { error: "ENCRYPTION_FAILED" }
        }
      }

      const sealAll = (
        targets: ReadonlyArray<Target>,
        padded: Uint8Array | undefined
      ): ReadonlyArray<Sealed> => {
        if (padded === undefined) return targets.map(() => undefined)
        const pairOf = makePairs()
        return targets.map((target) => sealOne(target, padded, pairOf(target.user)))
      }

      /** Not patient: what is not written down now is found out again with the next push. */
      const matched = (target: Target, vapidKey: string, at: number) =>
        log
          .append("log", {
            subject: subjects.subscription(target.user),
            type: "subscription.matched/1",
            body: { id: target.id, generation: target.stored.seq, vapidKey, at },
            messageId: `matched.${target.user}.${target.id}.${target.stored.seq}`
          })
          .pipe(Effect.ignore)

      const attempt = Effect.fnUntraced(function* (
        lane: PushService,
        key: string,
        target: Target,
        ref: BroadcastRef,
        sealed: Sealed,
        lastReason: StoredReason | undefined
      ) {
        const { host, origin } = lane
        const startedAt = yield* Clock.currentTimeMillis
        // It stood in line.
        if (startedAt >= ref.expiresAt)
          return {
            kind: "deferred" as const,
            reason: "lane-slow" as const,
            until: startedAt,
            millis: 0
          }
        if (sealed !== undefined && "error" in sealed)
          return { ...classify(sealed, host, startedAt), millis: 0 }
        // On every send: the settings may have changed since it was stored, and sockets look no literal address up.
        if (checkEndpoint(target.stored.data.endpoint, policy) !== undefined) {
          return { ...classify({ error: "ENDPOINT_NOT_ALLOWED" }, host, startedAt), millis: 0 }
        }
        const keyFault = vapid.fault(key)
        if (keyFault === "retired")
          return { ...classify({ error: "KEY_RETIRED" }, host, startedAt), millis: 0 }
        if (keyFault === "unknown") {
          // New, and other workers have it already: one of them takes the push, or this one after its next start, or nobody until its life ends.
          const until = startedAt + throttledBaseMillis(settings.retryBaseMillis)
          return { kind: "deferred" as const, reason: "key-unknown" as const, until, millis: 0 }
        }
        const push = {
          subscription: `${target.user}.${target.id}`,
          user: target.user,
          generation: target.stored.seq,
          broadcast: ref.broadcast,
          saidGone: lastReason === massGone,
          acceptedAt: ref.acceptedAt,
          storedAt: target.stored.lastModified,
          sentAt: startedAt
        }
        const held = lane.heldAt(push, startedAt)
        if (held !== undefined) return { ...held, millis: 0 }
        const headers: Record<string, string> = {
          urgency: ref.urgency,
          authorization: yield* vapid.authorization(origin, key)
        }
        if (ref.topic !== undefined) headers["topic"] = ref.topic
        if (sealed !== undefined) {
          headers["content-encoding"] = "aes128gcm"
          headers["content-type"] = "application/octet-stream"
        }
        const path = target.stored.data.endpoint.slice(origin.length)
        const ask = Effect.gen(function* () {
          // At least 1: WNS refuses 0 (webpush-go #66).
          const seconds = Math.max(
            1,
            Math.ceil((ref.expiresAt - (yield* Clock.currentTimeMillis)) / 1000)
          )
          headers["ttl"] = String(Math.min(seconds, ttlSecondsMax))
          const answer = yield* client.post({ origin, path, headers, body: sealed })
          const now = yield* Clock.currentTimeMillis
          return { answer, classified: classify(answer, host, now), now }
        })
        let heard = yield* ask
        let judging = lane
        const others = heard.classified.kind === "mismatch" ? vapid.othersThan(key) : []
        for (const other of others) {
          // With keys left to try, what was said so far proves nothing.
          if (heard.now >= ref.expiresAt) {
            return {
              kind: "deferred" as const,
              reason: "key-mismatch" as const,
              until: heard.now,
              millis: heard.now - startedAt
            }
          }
          headers["authorization"] = yield* vapid.authorization(origin, other)
          heard = yield* ask
          if (heard.classified.kind === "mismatch") continue
          // What this key is told is news of its own lane.
          judging = lanes.of(origin, other)
          if (heard.classified.kind === "accepted") yield* matched(target, other, heard.now)
          break
        }
        const second =
          others.length === 0
            ? secondTryOf(lane, heard.classified, heard.answer, heard.now)
            : undefined
        if (second !== undefined && heard.now < ref.expiresAt) {
          const fresh =
            second === "new-token"
              ? yield* vapid.renewed(origin, key, headers["authorization"]!)
              : headers["authorization"]
          if (second === "without-topic") delete headers["topic"]
          if (fresh !== undefined) {
            headers["authorization"] = fresh
            heard = yield* ask
          }
        }
        const { answer, classified, now } = heard
        const millis = now - startedAt
        if ("error" in answer) {
          yield* lanes.noticed(judging, judging.failed(classified, push, now))
          return { ...classified, millis }
        }
        const { judged, notices } = judging.judge(classified, push, answer.status, now)
        yield* lanes.noticed(judging, notices)
        return { ...judged, status: answer.status, millis }
      })

      const send = <E>(
        target: Target,
        ref: BroadcastRef,
        bodyOf: () => Sealed,
        turn: Effect.Effect<unknown, E>,
        lastReason?: StoredReason
      ) =>
        Effect.flatMap(Clock.currentTimeMillis, (now): Effect.Effect<Attempt, E> => {
          const key = vapid.keyOf(target.stored)
          const lane = lanes.of(originOf(target), key)
          const away = lane.turnedAway(ref.acceptedAt, now)
          if (away !== undefined) return Effect.as(turn, { ...away, millis: 0 })
          return lane.inTurn(
            () => client.roomOf(lane.origin),
            Effect.flatMap(turn, () => attempt(lane, key, target, ref, bodyOf(), lastReason))
          )
        })

      return Sender.of({ seal: sealAll, send })
    })
  )
}

/**
 * Scheme, host and port, byte for byte as they stand in the endpoint: WNS tokens break when a URL is written anew (web-push-php #233). Of what is
 * no endpoint (checked at registration; this can only be a list written by other means) it is one that no policy allows.
 */
export const originOf = ({ stored }: Target): string => {
  const origin = /^[a-z]+:\/\/[^/?#]+/.exec(stored.data.endpoint)?.[0]
  return origin !== undefined && URL.canParse(origin) ? origin : "https://invalid.invalid"
}
