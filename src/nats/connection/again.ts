// Tries again. A start waits while a cluster is not ready: after a cold start JetStream answers
// nothing, or that it is unavailable, until a majority of the servers runs and has elected leaders.
// A loop begins again after each end or failure: without the loop its stage would stop.
import { JetStreamApiError } from "@nats-io/jetstream"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { monotonicMillis } from "#clock/clocks.ts"
import type { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { NatsUnavailable, streamNotFound } from "./errors.ts"

const againAfter = "250 millis"
const logEveryMillis = 5_000
/** The last attempt has this time at least. */
const attemptMillisMin = 1_000

/**
 * nats-server: no leader, a server offline, or the request is not for this server yet. Where two
 * processes start at once, it refuses to make a stream that the other one makes, and may not find
 * that stream yet.
 */
const codes = [10004, 10005, 10007, 10008, 10009, 10039, 10118, streamNotFound]
/** Errors of clients for a request that nobody answered. */
const names = ["JetStreamNotEnabled", "NoRespondersError", "RequestError", "TimeoutError"]

/** Whether a request failed in a way that a cluster makes it fail while it is not ready. */
export const isNotReady = (cause: unknown): boolean => {
  if (cause instanceof JetStreamApiError)
    return codes.includes(cause.code) && !/insufficient storage$/i.test(cause.message)
  if (!(cause instanceof Error) && !(typeof cause === "object" && cause !== null)) return false
  const { _tag, name } = cause as { _tag?: unknown; name?: unknown }
  return _tag === "Unanswered" || names.includes(String(name))
}

const textOf = ({ cause, operation }: NatsUnavailable): string =>
  `${operation}: ${cause instanceof Error ? cause.message : String(cause)}`

const tooLate = (waitMillis: number, last: string) =>
  new NatsUnavailable({
    operation: last,
    reason: { _tag: "NotReady" },
    cause: new Error(
      `NATS was not ready within ${waitMillis / 1000} s (${last}). ` +
        "Our login must be permitted to use JetStream, and each stream needs a leader, so a " +
        "majority of the servers of a cluster must run, with space on their disks and within " +
        "max_ha_assets: `nats server report jetstream` shows them. " +
        "BELLCAST_NATS_WAIT_SECONDS is how long a start waits"
    )
  })

/**
 * Tries again while NATS is not ready for what `effect` needs, for `waitMillis` at most, and logs
 * what it waits for. Other failures are final. `effect` must be repeatable; `what` names it.
 */
export const whenReady = Effect.fnUntraced(function* <A, E, R>(
  what: string,
  effect: Effect.Effect<A, E | NatsUnavailable, R>,
  waitMillis: number
) {
  const began = yield* monotonicMillis
  let last = `${what}: no answer`
  let loggedAt = Number.NEGATIVE_INFINITY
  while (true) {
    const left = began + waitMillis - (yield* monotonicMillis)
    const result = yield* Effect.result(effect).pipe(
      Effect.timeoutOption(Math.max(left, attemptMillisMin))
    )
    if (result._tag === "Some") {
      if (result.value._tag === "Success") return result.value.success
      const { failure } = result.value
      if (!(failure instanceof NatsUnavailable && isNotReady(failure.cause)))
        return yield* Effect.fail(failure)
      last = textOf(failure)
    }
    const now = yield* monotonicMillis
    if (now >= began + waitMillis) return yield* tooLate(waitMillis, last)
    if (now >= loggedAt + logEveryMillis) {
      loggedAt = now
      const seconds = Math.round((began + waitMillis - now) / 1000)
      yield* Effect.logWarning("NATS is not ready yet: the start waits", { for: last, seconds })
    }
    yield* Effect.sleep(againAfter)
  }
})

/** Starts `run` again so long after each end, and logs failures. */
export const runForever = <E, R>(
  run: Effect.Effect<void, E, R>,
  after: "250 millis" | "500 millis",
  log: ReturnType<typeof makeRateLimitedLog>
): Effect.Effect<never, never, R> =>
  run.pipe(
    Effect.catchCause((cause) =>
      Cause.hasInterruptsOnly(cause) ? Effect.interrupt : log({ err: Cause.squash(cause) })
    ),
    Effect.repeat(Schedule.spaced(after)),
    Effect.andThen(Effect.never)
  )
