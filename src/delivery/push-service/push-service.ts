// The state of one push service and VAPID key in this process: whether the next push may be sent,
// and what a response means given those before it. Pure: callers give the time, by the monotonic
// clock, send, log and publish.
import { throttledBaseMillis } from "#domain/job.ts"
import type { DeferReason, RefusalReason, RetryReason } from "#domain/reason.ts"
import type { AttemptResult, Deferred, Push, ResponseResult } from "../attempt.ts"
import { ConnectivityBreaker, CredentialsBreaker } from "./breakers.ts"
import { type Gossip, Unpublished } from "./gossip.ts"
import { type GuardChange, goneMillis, MassGone } from "./mass-gone.ts"
import type { Origin } from "./origins.ts"
import { fullMillis, makeQueue, type Narrowed, SendWindow } from "./window.ts"

interface PushServiceOptions {
  readonly pushesUnderWayMax: number
  readonly breakerOpenMillis: number
  readonly retryBaseMillis: number
  /** Whether this process has time for more pushes. */
  readonly hasHeadroom: () => boolean
  /** The part of a bound that this process has now. Default: all of it. */
  readonly part?: (whole: number) => number
  /** Names the group of processes that send with this one now; undefined, the default: none do. */
  readonly group?: () => string | undefined
  /** See mass-gone.ts. Default: nothing is known. */
  readonly knownFrom?: () => number
  /** Notes accepted pushes and responses. Default: nothing does. */
  readonly remembered?: Pick<Origin, "accepted" | "noteResponse">
}

/** After a rotation of keys, all processes have the same ones within this time. */
const rotationMillis = 24 * 60 * 60_000

/** After this long, the breaker shows whether a refused push was refused alone. */
const lookAgainMillis = 1_000

/** A line of the log. */
export interface Notice {
  readonly level: "info" | "warn" | "error"
  readonly text: string
}

export class PushService {
  readonly origin: string
  /** Names the VAPID key. */
  readonly key: string
  readonly host: string
  readonly withPlace: ReturnType<typeof makeQueue>["withPlace"]
  readonly #hasHeadroom: () => boolean
  readonly #group: () => string | undefined
  readonly #massGone: MassGone
  readonly #credentials: CredentialsBreaker
  readonly #window: SendWindow
  readonly #connectivity: ConnectivityBreaker
  readonly #queue: ReturnType<typeof makeQueue>
  readonly #unpublished = new Unpublished()
  readonly #notices: Notices
  /** The last probe of the connectivity breaker. */
  #probe: Push | undefined
  readonly #remembered: PushServiceOptions["remembered"]

  constructor(origin: string, key: string, options: PushServiceOptions) {
    const { breakerOpenMillis, knownFrom, pushesUnderWayMax, retryBaseMillis } = options
    this.origin = origin
    this.key = key
    this.host = new URL(origin).hostname
    this.#notices = new Notices(this.host)
    this.#hasHeadroom = options.hasHeadroom
    const group = options.group ?? (() => undefined)
    this.#group = group
    this.#massGone = new MassGone(
      knownFrom ?? (() => Number.POSITIVE_INFINITY),
      () => group() !== undefined
    )
    this.#credentials = new CredentialsBreaker(breakerOpenMillis)
    this.#window = new SendWindow(
      pushesUnderWayMax,
      throttledBaseMillis(retryBaseMillis),
      options.part
    )
    this.#connectivity = new ConnectivityBreaker(retryBaseMillis, breakerOpenMillis)
    this.#queue = makeQueue(
      pushesUnderWayMax,
      () => this.#window.window,
      () => this.#window.isSlowed
    )
    this.withPlace = this.#queue.withPlace
    this.#remembered = options.remembered
  }

  /** Sequence in LOG of the newest broadcast of which a push was accepted; 0: none. */
  get newest(): number {
    return this.#massGone.newest
  }

  /** For metrics. */
  stateAt(now: number) {
    return {
      credentials: this.#credentials.stateAt(now),
      connectivity: this.#connectivity.stateAt(now),
      holding: this.#massGone.holding,
      window: this.#window.window
    }
  }

  /** Returns why a push must not wait in the queue; undefined: let it. */
  queueFull(acceptedAt: number, now: number): Deferred | undefined {
    if (!this.#queue.isFull()) return undefined
    return deferred("push-service-slow", fullMillis(now - acceptedAt))
  }

  /**
   * Returns why a push must not be sent now; undefined: send it. Only a push that passes every
   * check is noted as a probe: one that is deferred after all would make all others wait for it.
   */
  deferral(push: Push, now: number): Deferred | undefined {
    const closedUntil = this.#window.closedUntil(now)
    if (closedUntil !== undefined) return deferred("push-service-throttled", closedUntil - now)
    const unreachableUntil = this.#connectivity.deferral(now)
    if (unreachableUntil !== undefined) return deferred("unreachable", unreachableUntil - now)
    if (push.saidGone && !this.#massGone.mayProbe(push, now)) return massGoneWait(push, now)
    // The last check, because it notes its probe at once.
    const until = this.#credentials.admit(push, now)
    if (until !== undefined) return deferred("breaker-open", until - now)
    if (this.#connectivity.probes(now)) this.#probe = push
    if (push.saidGone) this.#massGone.probes(push, now)
    return undefined
  }

  /** Notes that a push which `deferral` let pass was withdrawn, and not sent. */
  withdrawn(push: Push): void {
    if (this.#probe === push) this.#connectivity.giveBack()
    this.#massGone.withdrawn(push)
  }

  /** Notes that no response came. The attempt counts; pushes wait if the breaker opens with it. */
  failed(reason: RetryReason, { sentAt, subscription }: Push, now: number): ReadonlyArray<Notice> {
    this.#remembered?.noteResponse(false)
    // The name may be this subscription's own, with no address or a forbidden one: strikes decide.
    if (reason !== "unknown-host" && reason !== "address-not-allowed") {
      const change = this.#connectivity.failed(subscription, sentAt, now)
      if (change !== undefined) this.#notices.notReached(reason, change)
    }
    return this.#notices.take()
  }

  /** Returns what the final response to a push means, given those before it. */
  judge(
    response: ResponseResult,
    push: Push,
    status: number,
    now: number
  ): { readonly judged: AttemptResult; readonly notices: ReadonlyArray<Notice> } {
    const result = this.#meant(response, push.storedAt, now)
    this.#remembered?.noteResponse(true)
    if (this.#connectivity.responded(now)) this.#notices.reached()
    if (result.kind === "delivered") this.#accepted(push, now)
    if (result.kind === "failed" && result.reason === "throttled")
      this.#throttled(push, now, result.retryAfterMillis)
    const guarded = this.#guarded(response, result, push, now)
    const waits = isRefusal(guarded) ? this.#refused(guarded.reason, push, status, now) : undefined
    return { judged: waits ?? guarded, notices: this.#notices.take() }
  }

  /** Whether other workers need the gossip at once. */
  get isUrgent(): boolean {
    return this.#unpublished.isUrgent || this.#massGone.isUrgent
  }

  /** Returns the gossip to publish; undefined: none. */
  takeGossip(worker: string, now: number): Gossip | undefined {
    const { answers, gone } = this.#massGone.takeCounts()
    const holds = this.#massGone.holding
    const findings = this.#unpublished.take(this.#credentials.openMillis(now), now)
    const row = this.#takeRow()
    const isEmpty = answers === 0 && !holds && row === undefined
    if (isEmpty && Object.keys(findings).length === 0) return undefined
    const reached = this.newest
    const { key, origin } = this
    return {
      v: 1,
      ...{ worker, origin, key, answers, gone, holds, ...findings },
      ...(reached === 0 ? {} : { reached }),
      ...(row === undefined ? {} : { row })
    }
  }

  #takeRow(): Gossip["row"] {
    const row = this.#massGone.takeRow()
    const group = this.#group()
    return row && group !== undefined ? { group, ...row } : undefined
  }

  /** Merges another worker's gossip. */
  merge(gossip: Gossip, now: number): ReadonlyArray<Notice> {
    const { answers, closedMillis = 0, gone, holds, openMillis, reached = 0, row, window } = gossip
    this.#notices.guardChanged(this.#massGone.merge({ answers, gone }, holds, reached, now))
    if (row !== undefined && row.group === this.#group())
      this.#notices.guardChanged(this.#massGone.mergeRow(gossip.worker, row))
    if (openMillis !== undefined && this.#credentials.merge(openMillis, now)) {
      this.#unpublished.breakerMerged()
      this.#notices.credentialsMerged(openMillis)
    }
    if (reached > 0) this.#remembered?.accepted(now)
    this.#window.merge({ window, closedMillis }, now)
    if (window !== undefined) this.#notices.throttledMerged(window)
    return this.#notices.take()
  }

  /**
   * Our key was accepted a moment ago, so a mismatch means that the subscription was made with
   * another one. A subscription of today is not judged: while keys are rotated, process by process,
   * it may have been made with a key that this process does not have yet.
   */
  #meant(response: ResponseResult, storedAt: number, now: number): ResponseResult {
    const isOld = now - storedAt >= rotationMillis
    return response.reason === "key-mismatch" && this.#credentials.proven(now) && isOld
      ? { kind: "gone", reason: response.reason }
      : response
  }

  #accepted(push: Push, now: number): void {
    this.#remembered?.accepted(now)
    if (this.#credentials.accepted(push, now)) {
      this.#notices.credentialsAccepted()
      this.#unpublished.breakerClosed()
    }
    if (this.#window.accepted(now, this.#queue.isWaiting() && this.#hasHeadroom()))
      this.#notices.fullSpeed()
  }

  #throttled(push: Push, now: number, waitMillis: number | undefined): void {
    const narrowed = this.#window.throttled(push.user, push.sentAt, now, waitMillis)
    if (narrowed === undefined) return
    this.#unpublished.narrowed(narrowed.window, now + narrowed.closedMillis)
    this.#notices.throttled(narrowed)
  }

  /** `response`: before {@link #meant} made a "gone" of a mismatch. */
  #guarded(
    response: ResponseResult,
    result: ResponseResult,
    push: Push,
    now: number
  ): AttemptResult {
    if (result.kind === "gone") {
      const { believed, change } = this.#massGone.gone(push, response.kind === "gone", now)
      this.#notices.guardChanged(change)
      return believed ? result : massGoneWait(push, now)
    }
    this.#notices.guardChanged(
      result.kind === "delivered"
        ? this.#massGone.accepted(push, push.saidGone, now)
        : this.#massGone.other(now)
    )
    return result
  }

  /** Returns how long the push waits; undefined: the refusal concerns its subscription alone. */
  #refused(reason: RefusalReason, push: Push, status: number, now: number): Deferred | undefined {
    // While our key is proven, a mismatch concerns one subscription, and one user may have many
    // such.
    if (reason === "key-mismatch" && this.#credentials.proven(now)) return undefined
    const refused = this.#credentials.refused(push, now)
    if (refused === "lone") return undefined
    if (refused.opens) {
      this.#unpublished.breakerOpened()
      this.#notices.credentialsRefused(reason, status)
    }
    // Another push may be accepted within the second: then this one was refused alone. If none is,
    // the breaker defers this push without sending it.
    return deferred(reason, Math.min(refused.until - now, lookAgainMillis))
  }
}

const deferred = (reason: DeferReason, waitMillis: number): Deferred => ({
  kind: "deferred",
  reason,
  waitMillis
})

const massGoneWait = ({ acceptedAt }: Push, now: number): Deferred =>
  deferred("mass-gone", goneMillis(now - acceptedAt))

/** Our VAPID key or token was refused: by the origin, or for one subscription of another key. */
const isRefusal = (
  result: AttemptResult
): result is { readonly kind: "failed"; readonly reason: RefusalReason } =>
  result.kind === "failed" && (result.reason === "credentials" || result.reason === "key-mismatch")

const none: ReadonlyArray<Notice> = []

/**
 * The lines of the log about one push service: one when something begins or ends. They name the
 * host and the reason, never an endpoint.
 */
class Notices {
  readonly #host: string
  #notices: Array<Notice> = []

  constructor(host: string) {
    this.#host = host
  }

  /** Returns the notices since the last call. */
  take(): ReadonlyArray<Notice> {
    if (this.#notices.length === 0) return none
    const taken = this.#notices
    this.#notices = []
    return taken
  }

  reached(): void {
    this.#add("info", "is reached again")
  }

  notReached(reason: RetryReason, change: "opens" | "silent"): void {
    const then = change === "opens" ? "pushes to it wait" : "its pushes are tried again"
    this.#add(reason === "tls" ? "error" : "warn", `cannot be reached (${reason}): ${then}`)
  }

  credentialsAccepted(): void {
    this.#add("info", "takes our credentials again")
  }

  credentialsRefused(reason: RefusalReason, status: number): void {
    this.#add("error", `refuses our credentials (${reason}, status ${status}): pushes to it wait`)
  }

  credentialsMerged(openMillis: number): void {
    if (openMillis === 0) this.#add("info", "takes our credentials again, another worker says")
    else this.#add("warn", "refuses our credentials, another worker says: pushes to it wait")
  }

  throttled({ closedMillis, window }: Narrowed): void {
    const wait = closedMillis === 0 ? "" : `, and none for ${Math.round(closedMillis / 1000)} s`
    this.#add("warn", `throttles us: ${window} pushes at a time from now on${wait}`)
  }

  throttledMerged(window: number): void {
    this.#add("warn", `throttles another worker: at most ${window} pushes at a time from now on`)
  }

  fullSpeed(): void {
    this.#add("info", "is sent to at full speed again")
  }

  guardChanged(change: GuardChange): void {
    const most = "says of most subscriptions that they"
    if (change === "holds")
      this.#add("warn", `${most} are gone: none is removed until that changes`)
    if (change === "trusts") this.#add("info", `${most} live: the gone ones are removed again`)
  }

  #add(level: Notice["level"], text: string): void {
    this.#notices.push({ level, text: `${this.#host} ${text}` })
  }
}
