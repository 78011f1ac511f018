// One attempt at one push: sign, send, judge the response.
import { Clock, Context, Effect, Layer } from "effect"
import { type Moment, moment, monotonicOf } from "#clock/moment.ts"
import { monotonicMillis } from "#clock/monotonic.ts"
import { Settings } from "#config"
import type { BroadcastRef } from "#domain/job.ts"
import type { StoredReason } from "#domain/reason.ts"
import type { EndpointPolicy } from "#domain/subscription/endpoint.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import type { Attempt, AttemptResult, ResponseResult } from "../attempt-result.ts"
import type { Push as SeenPush } from "../push-service/push.ts"
import type { PushService } from "../push-service/push-service.ts"
import { PushServices } from "../push-service/push-services.ts"
import { unsendable } from "./before.ts"
import { classify, type PushResponse, reasonOfError } from "./classify.ts"
import { PushClient } from "./client.ts"
import { clockAhead } from "./http-date.ts"
import { headersOf, pushOf, ttlOf } from "./request.ts"
import type { Sealed } from "./sealed.ts"
import { originOf, type Target } from "./target.ts"
import { Vapid } from "./vapid.ts"

/** The push of which one attempt is made. */
interface Push {
  readonly target: Target
  readonly ref: BroadcastRef
  /** Called once, when the body is needed. */
  readonly bodyOf: () => Sealed
  /** The reason of its last outcome; absent: this is its first attempt. */
  readonly lastReason?: StoredReason
}

/** The request of one attempt. Further tries of the attempt change its headers. */
interface Request {
  readonly pushService: PushService
  /** VAPID public key. */
  readonly key: string
  readonly target: Target
  readonly expiresAt: number
  readonly path: string
  readonly headers: Record<string, string>
  readonly body: Uint8Array | undefined
}

interface Received {
  readonly response: PushResponse
  readonly result: ResponseResult
  readonly at: Moment
  /** Judges the response: the push service as used with the key that was tried last. */
  readonly pushService: PushService
}

/**
 * Returns the change for the one second try, at once, that some responses deserve; undefined: none.
 * A 421 has closed its connection (see transport/).
 */
const secondTryOf = (
  pushService: PushService,
  { at, response, result }: Received
): "new-token" | "without-topic" | "other-connection" | undefined => {
  if (result.kind === "delivered" || "error" in response) return undefined
  if (pushService.doubtsToken(result, at.monotonic)) return "new-token"
  if (result.reason === "bad-topic") return "without-topic"
  return response.status === 421 ? "other-connection" : undefined
}

interface SendTools {
  readonly client: PushClient["Service"]
  readonly vapid: Vapid["Service"]
  readonly pushServices: PushServices["Service"]
  readonly log: EventLog["Service"]
  readonly policy: EndpointPolicy
  readonly retryBaseMillis: number
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

const warnOfClock = makeRateLimitedLog(
  "a push service refuses our credentials and its clock is not ours: a token that has ended, or " +
    "ends in more than a day, is refused; compare the clock of NATS with an NTP server",
  Effect.logError
)

const post = Effect.fnUntraced(function* (client: PushClient["Service"], request: Request) {
  const { body, expiresAt, headers, path, pushService } = request
  const { host, origin } = pushService
  headers["ttl"] = ttlOf(expiresAt, yield* Clock.currentTimeMillis)
  const response = yield* client.post({ origin, path, headers, body })
  const at = yield* moment
  const result = classify(response, host, at.at)
  const ahead = "error" in response ? 0 : clockAhead(response.headers["date"], at.at)
  if (result.reason === "credentials" && ahead !== 0)
    yield* warnOfClock({ host, aheadSeconds: Math.round(ahead / 1000) })
  const received: Received = { response, result, at, pushService }
  return received
})

/**
 * Tries other VAPID keys after a mismatch, until one gives another response. Returns "expired" when
 * the push expires with keys left to try: the mismatches then prove nothing.
 */
const tryKeys = Effect.fnUntraced(function* (
  { client, log, pushServices, vapid }: SendTools,
  request: Request,
  keys: ReadonlyArray<string>,
  first: Received
) {
  const { origin } = request.pushService
  let received = first
  for (const key of keys) {
    if (received.at.at >= request.expiresAt) return "expired" as const
    request.headers["authorization"] = yield* vapid.authorization(origin, key)
    received = yield* post(client, request)
    if (received.result.reason === "key-mismatch") continue
    if (received.result.kind === "delivered") yield* matched(log, request, key, received.at.at)
    return { ...received, pushService: pushServices.of(origin, key) }
  }
  return received
})

const trySecond = Effect.fnUntraced(function* (
  { client, vapid }: SendTools,
  request: Request,
  first: Received
) {
  const second = secondTryOf(request.pushService, first)
  if (second === undefined || first.at.at >= request.expiresAt) return first
  const { headers, key, pushService } = request
  if (second === "without-topic") delete headers["topic"]
  if (second === "new-token") {
    const renewed = yield* vapid.renewed(pushService.origin, key, headers["authorization"]!)
    if (renewed === undefined) return first
    headers["authorization"] = renewed
  }
  return yield* post(client, request)
})

/** At least 1: 0 means that nothing was sent. */
const millisSince = ({ sentAt }: SeenPush, now: number): number => Math.max(1, now - sentAt)

const judge = Effect.fnUntraced(function* (
  pushServices: PushServices["Service"],
  received: Received,
  push: SeenPush
) {
  const { at, pushService, response, result } = received
  const now = at.monotonic
  const millis = millisSince(push, now)
  if ("error" in response) {
    const reason = reasonOfError(response.error)
    yield* pushServices.report(pushService, pushService.failed(reason, push, now))
    return { kind: "failed", reason, decidedBy: "connection", millis } satisfies Attempt
  }
  const { status } = response
  const { judged, notices } = pushService.judge(result, push, status, now)
  yield* pushServices.report(pushService, notices)
  return { ...judged, decidedBy: "response", status, millis } satisfies Attempt
})

const unsent = (result: AttemptResult): Attempt => ({ ...result, decidedBy: "process", millis: 0 })

const attempt = Effect.fnUntraced(function* (
  tools: SendTools,
  { bodyOf, lastReason, ref, target }: Push,
  pushService: PushService,
  key: string
): Effect.fn.Return<Attempt> {
  const { client, policy, pushServices, retryBaseMillis, vapid } = tools
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
    path: target.stored.data.endpoint.slice(origin.length),
    headers: headersOf(ref, authorization, body !== undefined)
  }
  const first = yield* post(client, request)
  const otherKeys = first.result.reason === "key-mismatch" ? vapid.othersThan(key) : []
  const last = yield* otherKeys.length > 0
    ? tryKeys(tools, request, otherKeys, first)
    : trySecond(tools, request, first)
  if (last !== "expired") return yield* judge(pushServices, last, push)
  const millis = millisSince(push, yield* monotonicMillis)
  return { kind: "expired", reason: "expired:key-mismatch", decidedBy: "process", millis }
})

const makeSender = Effect.gen(function* () {
  const client = yield* PushClient
  const vapid = yield* Vapid
  const pushServices = yield* PushServices
  const log = yield* EventLog
  const { allowLoopbackEndpoints, pushHosts, retryBaseMillis } = yield* Settings
  const policy = { hosts: pushHosts, allowLoopback: allowLoopbackEndpoints }
  const tools: SendTools = { client, vapid, pushServices, log, policy, retryBaseMillis }

  const send = <E>(push: Push, turn: Effect.Effect<unknown, E>) =>
    Effect.flatMap(moment, (now): Effect.Effect<Attempt, E> => {
      const { ref, target } = push
      const key = vapid.keyOf(target.stored)
      const pushService = pushServices.of(originOf(target), key)
      const full = pushService.queueFull(monotonicOf(now, ref.acceptedAt), now.monotonic)
      if (full !== undefined) return Effect.as(turn, unsent(full))
      return pushService.inTurn(Effect.flatMap(turn, () => attempt(tools, push, pushService, key)))
    })

  return { send }
})

export class Sender extends Context.Service<
  Sender,
  {
    /**
     * Makes one attempt; never fails itself. At most the send window of pushes run for one push
     * service, so that a slow one does not hold up the others. `turn` runs when it is this push's
     * turn, before anything is sent; if `turn` fails, nothing is sent.
     */
    readonly send: <E>(push: Push, turn: Effect.Effect<unknown, E>) => Effect.Effect<Attempt, E>
  }
>()("bellcast/delivery/Sender") {
  static readonly layer = Layer.effect(Sender, makeSender)
}
