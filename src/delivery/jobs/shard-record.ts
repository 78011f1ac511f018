// Records the results of one delivery of a shard job, in batches, and proves by them that the shard
// is still this worker's.
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type * as Latch from "effect/Latch"
import type * as Semaphore from "effect/Semaphore"
import { monotonicMillis } from "#clock/monotonic.ts"
import type { ShardJob } from "#domain/job.ts"
import type { AppendConflict, NatsUnavailable } from "#nats/connection/errors.ts"
import type { Bodies } from "../push/encrypt.ts"
import type { Audience } from "../recipients/audience.ts"
import type { Payload } from "./payloads.ts"
import type { Begin } from "./push-batches.ts"
import type { Recorded } from "./record/follow-ups.ts"
import { provenMillis } from "./record/record.ts"
import type { ShardTools } from "./tools.ts"

/** Results in one outcome message: 64 of about 200 bytes are a third of what WORK takes. */
const resultsMax = 64
/** The time for which a result waits for others to be recorded with. */
const flushMillis = 20

/** The state of one delivery of a shard job. */
export interface ShardRun {
  readonly tools: ShardTools
  readonly job: ShardJob
  readonly subject: string
  readonly check: Audience["check"]
  readonly bodies: Bodies
  readonly variantOf: Payload["variantOf"]
  readonly begin: Begin
  /** When the rest of the shard is left to the next delivery, by the monotonic clock. */
  readonly leaveAt: number
  readonly flushing: Semaphore.Semaphore
  readonly results: Array<Recorded & { readonly permit: boolean }>
  /** Open while results wait to be recorded. */
  readonly hasResults: Latch.Latch
  /** Sequence of the last outcome. */
  seq: number
  /** When the append of the last outcome began, by the monotonic clock. */
  provenAt: number
  /** Permits of this shard's pushes. */
  permits: number
  /** Pushes left to the next delivery of the job. */
  left: number
  /** Removals, strikes or retries are not stored: the next delivery of the job stores them. */
  isPostponed: boolean
  /** Set when an outcome cannot be written: nothing more is sent, and later writes fail too. */
  failure: Cause.Cause<AppendConflict | NatsUnavailable> | undefined
}

export const release = (run: ShardRun, count: number) => {
  run.permits -= count
  return run.tools.permits.release(run.job.broadcast, count)
}

/** Whether an outcome of this delivery was stored so recently that no other can have the shard. */
export const isProven = (run: ShardRun) =>
  Effect.map(monotonicMillis, (now) => now - run.provenAt < provenMillis)

/** `end`: nothing follows, because all is recorded (`final`) or the shard is left (`released`). */
const write = Effect.fnUntraced(function* (run: ShardRun, end?: "final" | "released") {
  const { job, subject } = run
  const { record } = run.tools
  const list = run.results.splice(0, resultsMax)
  if (list.length === 0 && end === undefined && (yield* isProven(run))) return
  const final = end === "final"
  const body = { broadcast: job.broadcast, pushes: 0, ...(job.run && { run: job.run }) }
  yield* record.deadLetters(job, list)
  // Before the append: the process may be frozen between the storage and the acknowledgement.
  const provenAt = yield* monotonicMillis
  // A broadcast is finished only after the removals that it caused: so they come before the final
  // outcome, unless they are postponed.
  const hasRemovals = list.some(({ result: { fate } }) => fate === "gone" || fate === "dead")
  run.seq = yield* record.outcome(subject, run.seq, {
    ...body,
    results: list.map(({ result }) => result),
    final: final && !hasRemovals,
    ...(end === "released" && { released: true })
  })
  run.provenAt = provenAt
  record.counted(job, list)
  if (!(yield* record.followUps(job, list))) run.isPostponed = true
  if (final && hasRemovals)
    run.seq = yield* record.outcome(subject, run.seq, { ...body, results: [], final })
  yield* release(run, list.filter(({ permit }) => permit).length)
})

/**
 * Records results. When a write fails, it gives back all permits, so that waiting pushes see the
 * failure.
 */
const flush = (run: ShardRun, end?: "final" | "released") =>
  Effect.suspend(() =>
    run.failure === undefined ? write(run, end) : Effect.failCause(run.failure)
  ).pipe(
    Effect.tapCause((cause) =>
      Effect.suspend(() => {
        run.failure ??= cause
        return release(run, run.permits)
      })
    ),
    run.flushing.withPermit,
    Effect.uninterruptible
  )

/**
 * Records results 20 ms after the first of them. Without it, they would hold permits that the next
 * pushes need.
 */
export const flushWhenDue = (run: ShardRun) =>
  run.hasResults.await.pipe(
    Effect.andThen(run.hasResults.close),
    Effect.andThen(Effect.delay(flush(run), flushMillis)),
    Effect.forever
  )

export const flushRest = Effect.fnUntraced(function* (run: ShardRun) {
  while (run.results.length > resultsMax) yield* flush(run)
  yield* flush(run, run.left === 0 ? "final" : "released")
})

/**
 * Proves anew that the shard is this worker's, where that is due: the process may have been frozen,
 * or cut off from NATS, and another worker may send. An outcome without results that follows the
 * last one is the proof; after a conflict nothing more is sent.
 */
export const prove = Effect.fnUntraced(function* (run: ShardRun) {
  while (run.failure === undefined && !(yield* isProven(run))) yield* Effect.exit(flush(run))
})

/** Adds the result of one push. */
export const add = (run: ShardRun, recorded: ShardRun["results"][number]) => {
  run.results.push(recorded)
  return run.results.length >= resultsMax ? flush(run) : run.hasResults.open
}
