// Claims a shard: its outcomes in WORK say which worker has it. Records the results of one delivery
// of its job, in batches, and proves by them that the shard is still this worker's.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { monotonicMillis } from "#clock/clocks.ts"
import type { ShardJob } from "#domain/job.ts"
import { type PushResult, pushKey } from "#domain/outcome.ts"
import type { EventLog } from "#nats/stream/event-log.ts"
import type { Target } from "../attempt.ts"
import { attemptLimitsOf } from "../push/transport/exchange.ts"
import type { Audience } from "../recipients/audience.ts"
import { outcomeSubject, provenMillis, type Record, unfinished } from "./record.ts"
import type { Claimed, Past, ShardRun } from "./tools.ts"

/** Results in one outcome message: 64 of about 200 bytes are a third of what WORK takes. */
const resultsMax = 64
/** The time for which a result waits for others to be recorded with. */
const flushMillis = 20

const nothing: Past = {
  seq: 0,
  declared: 0,
  final: false,
  released: false,
  at: 0,
  isPostponed: false,
  results: new Map(),
  runs: new Map()
}

const readPast = Effect.fnUntraced(function* (log: EventLog["Service"], subject: string) {
  if ((yield* log.last("work", subject)) === undefined) return nothing
  let past = nothing
  const results = new Map<string, PushResult>()
  const runs = new Map<string, number>()
  yield* log.replay("work", [subject], ({ at, message, seq }) =>
    Effect.sync(() => {
      if (message.type !== "outcome/1") return
      for (const result of message.results) {
        const key = pushKey(result.user, result.subscription)
        results.set(key, result)
        runs.set(key, message.run ?? 0)
      }
      const declared = past.declared + message.pushes
      const { final, released = false } = message
      past = { ...past, seq, at, declared, final, released, results, runs }
    })
  )
  return past
})

/** Age of an outcome from which on its worker sends nothing more because of it. */
const claimMillisOf = (pushTimeoutMillis: number): number =>
  provenMillis + attemptLimitsOf(pushTimeoutMillis).attemptMillis

/** Returns functions that claim a shard, unless nothing of it is left to send. */
export const makeClaim = (log: EventLog["Service"], record: Record, pushTimeoutMillis: number) => {
  /**
   * Writes the size of the shard before anything is sent: where that cannot be written, outcomes
   * could not be either. Fails with AppendConflict when another worker has the shard.
   */
  const claim = Effect.fnUntraced(function* (
    job: ShardJob,
    past: Past,
    { targets, withoutSubscription }: Audience
  ) {
    const isNew = ({ id, user }: Target) => !past.results.has(pushKey(user, id))
    const total = past.results.size + targets.filter(isNew).length
    const claimedAt = yield* monotonicMillis
    const seq = yield* record.outcome(outcomeSubject.shard(job, job.shard), past.seq, {
      broadcast: job.broadcast,
      pushes: total - past.declared,
      results: [],
      final: false,
      ...(past.seq > 0 || withoutSubscription === undefined ? {} : { withoutSubscription })
    })
    return { ...past, seq, claimedAt } satisfies Claimed
  })

  /** The past of a shard, after the writes that a killed delivery left out. */
  const readAndEnsure = Effect.fnUntraced(function* (
    job: ShardJob,
    targets: ReadonlyArray<Target>
  ) {
    const past = yield* readPast(log, outcomeSubject.shard(job, job.shard))
    // An earlier delivery may have died between the outcome and what follows from it.
    const isStored = yield* record.followUpsAgain(job, unfinished(past, targets))
    return { ...past, isPostponed: !isStored }
  })

  /**
   * For a shard of which earlier deliveries may have recorded something. "taken": a worker with a
   * job of an earlier run may be sending it.
   */
  const again = Effect.fnUntraced(function* (job: ShardJob, audience: Audience) {
    const past = yield* readAndEnsure(job, audience.targets)
    if (past.final) return past
    const isTaken = past.seq > 0 && !past.released
    // A job of a later run is not the one that a worker may still have in hand.
    if (job.run !== undefined && isTaken) {
      const age = (yield* Clock.currentTimeMillis) - past.at
      if (age < claimMillisOf(pushTimeoutMillis)) return "taken" as const
    }
    return yield* claim(job, past, audience)
  })

  /**
   * Claims without reading; a conflict shows that another delivery began. Unless that one finished,
   * this one leaves the shard: the other may be sending, and a claim over it would send twice what
   * it has not recorded. If it died, the ack wait brings the job back.
   */
  const first = (job: ShardJob, audience: Audience) =>
    claim(job, nothing, audience).pipe(
      Effect.catchTag("AppendConflict", (conflict) =>
        Effect.filterOrFail(
          readAndEnsure(job, audience.targets),
          ({ final }) => final,
          () => conflict
        )
      )
    )

  return { again, first, readAndEnsure }
}

export const isClaimed = (past: Past | Claimed): past is Claimed => "claimedAt" in past

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
