// One attempt at one push: finds why it must not be sent, or signs, posts, sends another request
// where the response deserves one, and judges the last response.
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
import { type Attempt, type AttemptResult, originOf, type Push, type Target } from "../attempt.ts"
import type { PushService } from "../push-service/push-service.ts"
import { PushServices } from "../push-service/push-services.ts"
import type { Sealed } from "./encrypt.ts"
import { type PushClient, post, type Received, type Request, reasonOfError } from "./post.ts"
import { attemptLimitsOf, withdrawnCode } from "./transport/exchange.ts"
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

/**
 * Makes one attempt. At most the send window of pushes run for one push service, so that a slow one
 * does not delay the others. `permit` is taken when the push has its place, or finds none, before
 * anything is sent; if that fails, nothing is sent. It fails itself with "withdrawn" alone: while
 * the push waited for a connection, the broadcast was paused or cancelled, or the turn that its
 * rate gave it was lost, and nothing was sent.
 */
export const send = Effect.fnUntraced(function* <E, R>(
  push: PushToSend,
  permit: Effect.Effect<unknown, E, R>
) {
  const vapid = yield* Vapid
  const pushServices = yield* PushServices
  const now = yield* moment
  const { ref, target } = push
  const key = vapid.keyOf(target.stored)
  const pushService = pushServices.of(originOf(target), key)
  const full = pushService.queueFull(monotonicOf(now, ref.acceptedAt), now.monotonic)
  if (full !== undefined) return yield* Effect.as(permit, unsent(full))
  const attempted = Effect.flatMap(permit, () => attempt(push, pushService, key))
  return yield* pushService.withPlace(ref.broadcast, attempted)
})

const attempt = Effect.fnUntraced(function* (
  { bodyOf, lastReason, ref, target, waitMillisMax }: PushToSend,
  pushService: PushService,
  key: string
): Effect.fn.Return<
  Attempt,
  "withdrawn",
  EventLog | PushClient | PushServices | Settings | States | Vapid
> {
  const settings = yield* Settings
  const vapid = yield* Vapid
  const { orderOf } = yield* States
  const sealed = bodyOf()
  const sentAt = yield* moment
  const conditions = { ...conditionsOf(settings), keyFault: vapid.fault(key) }
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
    isWithdrawn: () => orderOf(ref) !== "send",
    waitMillisMax,
    waitedMillis: 0,
    lastTryAt: sentAt.monotonic + attemptLimitsOf(settings.pushTimeoutMillis).triesMillis,
    path: target.stored.data.endpoint.slice(origin.length),
    headers: headersOf(ref, authorization, body !== undefined)
  }
  const first = yield* post(request)
  const last = first.result.kind === "delivered" ? first : yield* tryFurther(request, first)
  if (typeof last !== "string") {
    const { response } = last
    if ("error" in response && response.error === withdrawnCode) {
      pushService.withdrawn(push)
      return yield* Effect.fail("withdrawn" as const)
    }
    return yield* judge(last, push, request.waitedMillis)
  }
  const millis = millisSince(push, yield* monotonicMillis)
  if (last === "late") return { kind: "failed", reason: "timeout", decidedBy: "connection", millis }
  return { kind: "expired", reason: "expired:key-mismatch", decidedBy: "process", millis }
})

const unsent = (result: AttemptResult): Attempt => ({ ...result, decidedBy: "process", millis: 0 })

interface Conditions {
  readonly policy: EndpointPolicy
  readonly retryBaseMillis: number
  /** Why nothing can be signed with the push's VAPID key; undefined: it can. */
  readonly keyFault: "retired" | "unknown" | undefined
}

const conditionsOf = ({
  allowLoopbackEndpoints: allowLoopback,
  pushHosts: hosts,
  retryBaseMillis
}: Settings["Service"]) => ({ policy: { hosts, allowLoopback }, retryBaseMillis })

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

/** Why an attempt that needs another request ends without it. */
type NoTry = "expired" | "late"

/**
 * Returns the response to the last request of an attempt, given that to its first one, which did
 * not deliver. Some responses deserve another request at once: with another VAPID key, with a fresh
 * token, without the topic, over another connection. "expired": the push expired with keys left to
 * try, so the mismatches prove nothing. "late": the attempt has lasted too long for another
 * request.
 */
export const tryFurther = Effect.fnUntraced(function* (request: Request, first: Received) {
  const isMismatch = first.result.reason === "key-mismatch"
  const keys = isMismatch ? (yield* Vapid).othersThan(request.key) : []
  return yield* keys.length > 0 ? tryKeys(request, keys, first) : trySecond(request, first)
})

/** Tries other VAPID keys after a mismatch, until one gives another response. */
const tryKeys = Effect.fnUntraced(function* (
  request: Request,
  keys: ReadonlyArray<string>,
  first: Received
) {
  const vapid = yield* Vapid
  const pushServices = yield* PushServices
  const { origin } = request.pushService
  let received = first
  for (const key of keys) {
    request.headers["authorization"] = yield* vapid.authorization(origin, key)
    const end = yield* endOf(request)
    if (end !== undefined) return end
    received = yield* post(request)
    if (received.result.reason === "key-mismatch") continue
    if (received.result.kind === "delivered") yield* matched(request, key, received.at.at)
    return { ...received, pushService: pushServices.of(origin, key) }
  }
  return received
})

/**
 * Records the key that a subscription was made with. Not retried: the next push finds it out again.
 */
const matched = ({ target }: Request, vapidKey: string, at: number) =>
  Effect.flatMap(EventLog, (log) =>
    log.append("log", {
      subject: subjects.subscription(target.user),
      type: "subscription.matched",
      body: { id: target.id, generation: target.stored.seq, vapidKey, at },
      messageId: `matched.${target.user}.${target.id}.${target.stored.seq}`
    })
  ).pipe(Effect.ignore)

const trySecond = Effect.fnUntraced(function* (request: Request, first: Received) {
  const second = secondTryOf(first)
  if (second === undefined) return first
  const { headers, key, pushService } = request
  if (second === "without-topic") delete headers["topic"]
  if (second === "new-token") {
    const vapid = yield* Vapid
    const renewed = yield* vapid.renewed(pushService.origin, key, headers["authorization"]!)
    if (renewed === undefined) return first
    headers["authorization"] = renewed
  }
  const end = yield* endOf(request)
  // The breaker counts a refusal, and the next attempt has the new token.
  if (end === "expired" || (end === "late" && second === "new-token")) return first
  return end ?? (yield* post(request))
})

/**
 * Returns the change for one second try; undefined: none. A refusal of the credentials may be due
 * to a token gone bad; a mismatch is not: every token names the same key. A 421 has closed its
 * connection.
 */
const secondTryOf = ({ response, result }: Received) => {
  if ("error" in response) return undefined
  // Also where the refusals opened the breaker: its probes would come with the old token for hours.
  if (result.reason === "credentials") return "new-token"
  if (result.reason === "bad-topic") return "without-topic"
  return response.status === 421 ? "other-connection" : undefined
}

/** Asked once its token is there, for which a child waits. Undefined: another request may begin. */
const endOf = ({ expiresAt, lastTryAt }: Request) =>
  Effect.map(moment, ({ at, monotonic }): NoTry | undefined => {
    if (at >= expiresAt) return "expired"
    return monotonic > lastTryAt ? "late" : undefined
  })

const judge = Effect.fnUntraced(function* (received: Received, push: Push, waitedMillis: number) {
  const { report } = yield* PushServices
  const { at, pushService, response, result } = received
  const now = at.monotonic
  if ("error" in response) {
    const reason = reasonOfError(response.error)
    yield* report(pushService, pushService.failed(reason, push, now))
    const millis = millisSince(push, now)
    return { kind: "failed", reason, decidedBy: "connection", millis } satisfies Attempt
  }
  const { status } = response
  const millis = millisSince(push, now, waitedMillis)
  const { judged, notices } = pushService.judge(result, push, status, now)
  yield* report(pushService, notices)
  return { ...judged, decidedBy: "response", status, millis } satisfies Attempt
})

/** Without the wait for a connection. At least 1: 0 means that nothing was sent. */
const millisSince = ({ sentAt }: Push, now: number, waitedMillis = 0): number =>
  Math.max(1, now - sentAt - waitedMillis)
