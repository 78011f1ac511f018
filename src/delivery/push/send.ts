// One attempt at one push: finds why it must not be sent, or signs, posts and judges the response.
import * as Effect from "effect/Effect"
import { States } from "#broadcasts/states.ts"
import { type Moment, moment, monotonicMillis, monotonicOf } from "#clock/clocks.ts"
import { Settings } from "#config"
import { type BroadcastRef, throttledBaseMillis } from "#domain/job.ts"
import { pushKey } from "#domain/outcome.ts"
import type { StoredReason } from "#domain/reason.ts"
import { checkEndpoint, type EndpointPolicy } from "#domain/subscription/endpoint.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import {
  type Attempt,
  type AttemptResult,
  originOf,
  type Push,
  type ResponseResult,
  type Target
} from "../attempt.ts"
import type { PushService } from "../push-service/push-service.ts"
import { makePushServices, type PushServices } from "../push-service/push-services.ts"
import type { Sealed } from "./encrypt.ts"
import { makePost, reasonOfError } from "./post.ts"
import type { PushResponse } from "./transport/exchange.ts"
import { attemptLimitsOf, heldCode } from "./transport/exchange.ts"
import { Vapid } from "./vapid.ts"

/** The push of which one attempt is made. */
interface PushToSend {
  readonly target: Target
  readonly ref: BroadcastRef
  /** Called once, when the body is needed. */
  readonly bodyOf: () => Sealed
  /** The reason of its last outcome; absent: this is its first attempt. */
  readonly lastReason?: StoredReason
  /** The longest wait for an HTTP/2 connection: after that its turn is lost. */
  readonly waitMillisMax: number
}

interface SendTools {
  readonly post: (request: Request) => Effect.Effect<Received>
  readonly vapid: Vapid["Service"]
  readonly pushServices: PushServices
  readonly orderOf: States["Service"]["orderOf"]
  readonly log: EventLog["Service"]
  readonly policy: EndpointPolicy
  readonly retryBaseMillis: number
  readonly triesMillis: number
}

interface Conditions {
  readonly policy: EndpointPolicy
  readonly retryBaseMillis: number
  /** Why nothing can be signed with the push's VAPID key; undefined: it can. */
  readonly keyFault: "retired" | "unknown" | undefined
}

/** Returns what a push comes to at `now` without being sent; undefined: send it. */
export const unsendable = (
  { keyFault, policy, retryBaseMillis }: Conditions,
  target: Target,
  ref: BroadcastRef,
  sealed: Sealed,
  now: number
): AttemptResult | undefined => {
  // The push may have expired while it waited in the send queue.
  if (now >= ref.expiresAt) return { kind: "expired", reason: "expired:push-service-slow" }
  if (sealed === "invalid-key") return { kind: "gone", reason: sealed }
  if (sealed === "encryption") return { kind: "failed", reason: sealed }
  // The settings may have changed since registration, and sockets do not look up literal addresses.
  if (checkEndpoint(target.stored.data.endpoint, policy) !== undefined)
    return { kind: "dead", reason: "endpoint-not-allowed" }
  if (keyFault === "retired") return { kind: "dead", reason: "key-retired" }
  // A new key that other workers have already. One of them takes the push, or this one after its
  // restart.
  if (keyFault === "unknown")
    return {
      kind: "deferred",
      reason: "key-unknown",
      waitMillis: throttledBaseMillis(retryBaseMillis)
    }
  return undefined
}

/** The push as its push service sees it. */
const pushOf = (
  target: Target,
  ref: BroadcastRef,
  lastReason: StoredReason | undefined,
  sentAt: Moment
): Push => ({
  subscription: pushKey(target.user, target.id),
  user: target.user,
  generation: target.stored.seq,
  broadcast: ref.broadcast,
  saidGone: lastReason === "mass-gone",
  acceptedAt: monotonicOf(sentAt, ref.acceptedAt),
  storedAt: monotonicOf(sentAt, target.stored.lastModified),
  sentAt: sentAt.monotonic
})

const headersOf = (
  ref: BroadcastRef,
  authorization: string,
  hasBody: boolean
): Record<string, string> => ({
  urgency: ref.urgency,
  authorization,
  ...(ref.topic === undefined ? {} : { topic: ref.topic }),
  ...(hasBody
    ? { "content-encoding": "aes128gcm", "content-type": "application/octet-stream" }
    : {})
})

/** Without the wait for a connection. At least 1: 0 means that nothing was sent. */
const millisSince = ({ sentAt }: Push, now: number, waitedMillis = 0): number =>
  Math.max(1, now - sentAt - waitedMillis)

const judge = Effect.fnUntraced(function* (
  pushServices: PushServices,
  received: Received,
  push: Push,
  waitedMillis: number
) {
  const { at, pushService, response, result } = received
  const now = at.monotonic
  if ("error" in response) {
    const reason = reasonOfError(response.error)
    yield* pushServices.report(pushService, pushService.failed(reason, push, now))
    const millis = millisSince(push, now)
    return { kind: "failed", reason, decidedBy: "connection", millis } satisfies Attempt
  }
  const { status } = response
  const millis = millisSince(push, now, waitedMillis)
  const { judged, notices } = pushService.judge(result, push, status, now)
  yield* pushServices.report(pushService, notices)
  return { ...judged, decidedBy: "response", status, millis } satisfies Attempt
})

const unsent = (result: AttemptResult): Attempt => ({ ...result, decidedBy: "process", millis: 0 })

const attempt = Effect.fnUntraced(function* (
  tools: SendTools,
  { bodyOf, lastReason, ref, target, waitMillisMax }: PushToSend,
  pushService: PushService,
  key: string
): Effect.fn.Return<Attempt, "held"> {
  const { orderOf, policy, pushServices, retryBaseMillis, triesMillis, vapid } = tools
  const sealed = bodyOf()
  const sentAt = yield* moment
  const conditions = { policy, retryBaseMillis, keyFault: vapid.fault(key) }
  const result = unsendable(conditions, target, ref, sealed, sentAt.at)
  if (result !== undefined) return unsent(result)
  const push = pushOf(target, ref, lastReason, sentAt)
  const deferred = pushService.deferral(push, sentAt.monotonic)
  if (deferred !== undefined) return unsent(deferred)
  const { origin } = pushService
  const body = typeof sealed === "string" ? undefined : sealed
  const authorization = yield* vapid.authorization(origin, key)
  const request: Request = {
    ...{ pushService, key, target, expiresAt: ref.expiresAt, body },
    isHeld: () => orderOf(ref) !== "send",
    waitMillisMax,
    waitedMillis: 0,
    lastTryAt: sentAt.monotonic + triesMillis,
    path: target.stored.data.endpoint.slice(origin.length),
    headers: headersOf(ref, authorization, body !== undefined)
  }
  const first = yield* tools.post(request)
  const last = first.result.kind === "delivered" ? first : yield* tryFurther(tools, request, first)
  if (typeof last !== "string") {
    const { response } = last
    if ("error" in response && response.error === heldCode) {
      pushService.held(push)
      return yield* Effect.fail("held" as const)
    }
    return yield* judge(pushServices, last, push, request.waitedMillis)
  }
  const millis = millisSince(push, yield* monotonicMillis)
  if (last === "late") return { kind: "failed", reason: "timeout", decidedBy: "connection", millis }
  return { kind: "expired", reason: "expired:key-mismatch", decidedBy: "process", millis }
})

/**
 * Returns a function that makes one attempt. At most the send window of pushes run for one push
 * service, so that a slow one does not hold up the others. `permit` is taken when the push has its
 * place, or finds none, before anything is sent; if that fails, nothing is sent. It fails itself
 * with "held" alone: while the push waited for a connection, the broadcast was paused or cancelled,
 * or the turn that its rate gave it was lost, and nothing was sent.
 */
export const makeSend = Effect.gen(function* () {
  const vapid = yield* Vapid
  const pushServices = yield* makePushServices
  const log = yield* EventLog
  const { orderOf } = yield* States
  const { allowLoopbackEndpoints, pushHosts, pushTimeoutMillis, retryBaseMillis } = yield* Settings
  const policy = { hosts: pushHosts, allowLoopback: allowLoopbackEndpoints }
  const tools: SendTools = {
    post: yield* makePost,
    ...{ vapid, pushServices, orderOf, log, policy, retryBaseMillis },
    triesMillis: attemptLimitsOf(pushTimeoutMillis).triesMillis
  }

  return <E>(
    push: PushToSend,
    permit: Effect.Effect<unknown, E>
  ): Effect.Effect<Attempt, E | "held"> =>
    Effect.flatMap(moment, (now) => {
      const { ref, target } = push
      const key = vapid.keyOf(target.stored)
      const pushService = pushServices.of(originOf(target), key)
      const full = pushService.queueFull(monotonicOf(now, ref.acceptedAt), now.monotonic)
      if (full !== undefined) return Effect.as(permit, unsent(full))
      const attempted = Effect.flatMap(permit, () => attempt(tools, push, pushService, key))
      return pushService.withPlace(ref.broadcast, attempted)
    })
})

export type Send = Effect.Success<typeof makeSend>

// Further requests of one attempt, at once, which some responses deserve: with another VAPID key,
// with a fresh token, without the topic, over another connection.

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
