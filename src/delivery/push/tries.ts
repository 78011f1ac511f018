// Further requests of one attempt, at once, which some responses deserve: with another VAPID key,
// with a fresh token, without the topic, over another connection.
import * as Effect from "effect/Effect"
import type { Moment } from "#clock/clocks.ts"
import type { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import type { ResponseResult, Target } from "../attempt.ts"
import type { PushService } from "../push-service/push-service.ts"
import type { PushServices } from "../push-service/push-services.ts"
import type { PushResponse } from "./transport/response.ts"
import type { Vapid } from "./vapid.ts"

/** The request of one attempt. Further tries change its headers. */
export interface Request {
  readonly pushService: PushService
  /** VAPID public key. */
  readonly key: string
  readonly target: Target
  readonly expiresAt: number
  /** Latest start of another try, in milliseconds of the monotonic clock. */
  readonly lastTryAt: number
  readonly path: string
  readonly headers: Record<string, string>
  readonly body: Uint8Array | undefined
  readonly isHeld: () => boolean
  readonly waitMillisMax: number
  /** Milliseconds that its requests have waited for a connection. */
  waitedMillis: number
}

export interface Received {
  readonly response: PushResponse
  readonly result: ResponseResult
  readonly at: Moment
  /** Judges the response: the push service as used with the key that was tried last. */
  readonly pushService: PushService
}

interface TryTools {
  readonly post: (request: Request) => Effect.Effect<Received>
  readonly vapid: Vapid["Service"]
  readonly pushServices: PushServices
  readonly log: EventLog["Service"]
}

/**
 * Records the key that a subscription was made with. Not retried: the next push finds it out again.
 */
const matched = (log: EventLog["Service"], { target }: Request, vapidKey: string, at: number) =>
  log
    .append("log", {
      subject: subjects.subscription(target.user),
      type: "subscription.matched/1",
      body: { id: target.id, generation: target.stored.seq, vapidKey, at },
      messageId: `matched.${target.user}.${target.id}.${target.stored.seq}`
    })
    .pipe(Effect.ignore)

/** Why an attempt that needs another request ends without it. */
type NoTry = "expired" | "late"

const noTryAfter = ({ expiresAt, lastTryAt }: Request, { at }: Received): NoTry | undefined => {
  if (at.at >= expiresAt) return "expired"
  return at.monotonic > lastTryAt ? "late" : undefined
}

/** Tries other VAPID keys after a mismatch, until one gives another response. */
const tryKeys = Effect.fnUntraced(function* (
  { log, post, pushServices, vapid }: TryTools,
  request: Request,
  keys: ReadonlyArray<string>,
  first: Received
) {
  const { origin } = request.pushService
  let received = first
  for (const key of keys) {
    const end = noTryAfter(request, received)
    if (end !== undefined) return end
    request.headers["authorization"] = yield* vapid.authorization(origin, key)
    received = yield* post(request)
    if (received.result.reason === "key-mismatch") continue
    if (received.result.kind === "delivered") yield* matched(log, request, key, received.at.at)
    return { ...received, pushService: pushServices.of(origin, key) }
  }
  return received
})

/** Returns the change for one second try; undefined: none. A 421 has closed its connection. */
const secondTryOf = ({ pushService }: Request, { at, response, result }: Received) => {
  if ("error" in response) return undefined
  if (pushService.doubtsToken(result, at.monotonic)) return "new-token"
  if (result.reason === "bad-topic") return "without-topic"
  return response.status === 421 ? "other-connection" : undefined
}

const trySecond = Effect.fnUntraced(function* (
  { post, vapid }: TryTools,
  request: Request,
  first: Received
) {
  const second = secondTryOf(request, first)
  const end = noTryAfter(request, first)
  if (second === undefined || end === "expired") return first
  const { headers, key, pushService } = request
  if (second === "without-topic") delete headers["topic"]
  if (second === "new-token") {
    const renewed = yield* vapid.renewed(pushService.origin, key, headers["authorization"]!)
    // The breaker counts this refusal, and the next attempt has the new token.
    if (renewed === undefined || end !== undefined) return first
    headers["authorization"] = renewed
  }
  return end ?? (yield* post(request))
})

/**
 * Returns the response to the last request of an attempt, given that to its first one, which did
 * not deliver. "expired": the push expired with keys left to try, so the mismatches prove nothing.
 * "late": the attempt has lasted too long for another request.
 */
export const tryFurther = (
  tools: TryTools,
  request: Request,
  first: Received
): Effect.Effect<Received | NoTry> => {
  const isMismatch = first.result.reason === "key-mismatch"
  const keys = isMismatch ? tools.vapid.othersThan(request.key) : []
  return keys.length > 0 ? tryKeys(tools, request, keys, first) : trySecond(tools, request, first)
}
