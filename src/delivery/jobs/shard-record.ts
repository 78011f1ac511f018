// Claims a shard: its outcomes in WORK say which worker has it. Records the results of one delivery
// of its job, in batches, and proves by them that the shard is still this worker's.
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Semaphore from "effect/Semaphore"
import { monotonicMillis } from "#clock/clocks.ts"
import { Settings } from "#config"
import type { ShardJob } from "#domain/job.ts"
import { type PushResult, pushKey } from "#domain/outcome.ts"
import type { AppendConflict, NatsUnavailable } from "#nats/connection/errors.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { UserToken } from "#streams/tokens.ts"
import { removedData, type Target } from "../attempt.ts"
import { Elapsed } from "../elapsed.ts"
import { attemptLimitsOf } from "../push/transport/exchange.ts"
import type { Audience } from "../recipients/audience.ts"
import {
  outcomeSubject,
  Permits,
  provenMillis,
  writeFollowUpsAgain,
  writeInOrder,
  writeOutcome
} from "./record.ts"
import type { Recorded } from "./result.ts"

/** Results in one outcome message: 64 of about 200 bytes are a third of what WORK takes. */
const resultsMax = 64
/** The time for which a result waits for others to be recorded with. */
const flushMillis = 20

/** The outcomes that earlier deliveries of a job recorded. */
interface Past {
  /** The results, by {@link pushKey}. */
  readonly results: ReadonlyMap<string, PushResult>
  /** The runs of the broadcast in which these were recorded, by the same keys. */
  readonly runs: ReadonlyMap<string, number>
  /** Sequence of the last outcome; 0: none. */
  readonly seq: number
  /** Pushes that the shard has, as the outcomes say. */
  readonly declared: number
  /** Nothing is left to send. */
  readonly final: boolean
  /** The worker that wrote the last outcome sends no more. */
  readonly released: boolean
  /** When the server stored the last outcome. */
  readonly at: number
  /** Removals, strikes or retries of these outcomes are not stored yet. */
  readonly isPostponed: boolean
}

/** A shard that this worker has. */
export interface Claimed extends Past {
  /** When the append of the claim began, by the monotonic clock. */
  readonly claimedAt: number
}

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

/**
 * Claims without reading; a conflict shows that another delivery began. Unless that one finished,
 * this one leaves the shard: the other may be sending, and a claim over it would send twice what
 * it has not recorded. If it died, the ack wait brings the job back.
 */
export const claimFirst = (job: ShardJob, audience: Audience) =>
  claim(job, nothing, audience).pipe(
    Effect.catchTag("AppendConflict", (conflict) =>
      Effect.filterOrFail(
        readAndEnsure(job, audience.targets),
        ({ final }) => final,
        () => conflict
      )
    )
  )

/**
 * Claims a shard of which earlier deliveries may have recorded something, unless nothing of it is
 * left to send. "taken": a worker with a job of an earlier run may be sending it.
 */
export const claimAgain = Effect.fnUntraced(function* (job: ShardJob, audience: Audience) {
  const past = yield* readAndEnsure(job, audience.targets)
  if (past.final) return past
  const isTaken = past.seq > 0 && !past.released
  // A job of a later run is not the one that a worker may still have in hand.
  if (job.run !== undefined && isTaken) {
    const { pushTimeoutMillis } = yield* Settings
    const { since } = yield* Elapsed
    const age = yield* since(`work ${past.seq}`, past.at)
    // A worker sends nothing more because of an outcome of this age.
    if (age < provenMillis + attemptLimitsOf(pushTimeoutMillis).attemptMillis)
      return "taken" as const
  }
  return yield* claim(job, past, audience)
})

export const isClaimed = (past: Past | Claimed): past is Claimed => "claimedAt" in past

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
  const seq = yield* writeOutcome(outcomeSubject.shard(job, job.shard), past.seq, {
    broadcast: job.broadcast,
    pushes: total - past.declared,
    results: [],
    final: false,
    ...(past.seq > 0 || withoutSubscription === undefined ? {} : { withoutSubscription })
  })
  return { ...past, seq, claimedAt } satisfies Claimed
})

/** The past of a shard, after the writes that a killed delivery left out. */
export const readAndEnsure = Effect.fnUntraced(function* (
  job: ShardJob,
  targets: ReadonlyArray<Target>
) {
  const past = yield* readPast(outcomeSubject.shard(job, job.shard))
  // An earlier delivery may have died between the outcome and what follows from it.
  const isStored = yield* writeFollowUpsAgain(job, unfinished(past, targets))
  return { ...past, isPostponed: !isStored }
})

const readPast = Effect.fnUntraced(function* (subject: string) {
  const log = yield* EventLog
  if ((yield* log.last("work", subject)) === undefined) return nothing
  let past = nothing
  const results = new Map<string, PushResult>()
  const runs = new Map<string, number>()
  yield* log.replay("work", [subject], ({ at, message, seq }) =>
    Effect.sync(() => {
      if (message.type !== "outcome") return
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

/** Returns the past results of which removals and retry jobs may be missing. */
const unfinished = (past: Past, targets: ReadonlyArray<Target>): ReadonlyArray<Recorded> => {
  const present = new Map(targets.map((target) => [pushKey(target.user, target.id), target]))
  return [...past.results].flatMap(([key, result]): ReadonlyArray<Recorded> => {
    const target = present.get(key)
    const firstRun = past.runs.get(key)!
    const isPresent = target !== undefined && target.stored.moved === undefined
    if (isPresent) return [{ target, result, firstRun }]
    // A removed subscription still needs a last outcome. Its retry job finds it removed and records
    // that.
    const removed = { target: removedTarget(result), result, firstRun }
    return result.fate === "retrying" ? [removed] : []
  })
}

/** A target in place of a subscription that was removed. */
const removedTarget = ({ subscription, user }: PushResult): Target => ({
  user: user as UserToken,
  id: subscription,
  stored: { seq: 0, lastModified: 0, data: removedData }
})

/** A claimed shard, as far as this delivery of its job has come. */
export interface OwnShard {
  readonly job: ShardJob
  readonly subject: string
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

/** A shard of which this delivery has recorded nothing but its claim. */
export const ownShard = (job: ShardJob, { claimedAt, isPostponed, seq }: Claimed): OwnShard => ({
  job,
  subject: outcomeSubject.shard(job, job.shard),
  flushing: Semaphore.makeUnsafe(1),
  results: [],
  hasResults: Latch.makeUnsafe(),
  seq,
  provenAt: claimedAt,
  permits: 0,
  left: 0,
  isPostponed,
  failure: undefined
})

/** Adds the result of one push. */
export const add = (shard: OwnShard, recorded: OwnShard["results"][number]) => {
  shard.results.push(recorded)
  return shard.results.length >= resultsMax ? flush(shard) : shard.hasResults.open
}

/**
 * Records results 20 ms after the first of them. Without it, they would keep permits that the next
 * pushes need.
 */
export const flushWhenDue = (shard: OwnShard) =>
  shard.hasResults.await.pipe(
    Effect.andThen(shard.hasResults.close),
    Effect.andThen(Effect.delay(flush(shard), flushMillis)),
    Effect.forever
  )

/** Records what was sent before a push died: the next delivery would send it again. */
export const flushSent = Effect.fnUntraced(function* (shard: OwnShard) {
  while (shard.failure === undefined && shard.results.length > 0) yield* Effect.exit(flush(shard))
})

export const flushRest = Effect.fnUntraced(function* (shard: OwnShard) {
  while (shard.results.length > resultsMax) yield* flush(shard)
  yield* flush(shard, shard.left === 0 ? "final" : "released")
})

/**
 * Proves anew that the shard is this worker's, where that is due: the process may have been frozen,
 * or cut off from NATS, and another worker may send. An outcome without results that follows the
 * last one is the proof; after a conflict nothing more is sent.
 */
export const prove = Effect.fnUntraced(function* (shard: OwnShard) {
  while (shard.failure === undefined && !(yield* isProven(shard))) yield* Effect.exit(flush(shard))
})

/** Whether an outcome of this delivery was stored so recently that no other can have the shard. */
export const isProven = (shard: OwnShard) =>
  Effect.map(monotonicMillis, (now) => now - shard.provenAt < provenMillis)

/** Gives back permits of the shard's pushes. */
export const release = (shard: OwnShard, count: number) => {
  // At once: between two effects another fiber may give back permits, too.
  shard.permits -= count
  return Effect.flatMap(Permits, (permits) => permits.release(shard.job.broadcast, count))
}

/**
 * Records results. When a write fails, it gives back all permits, so that waiting pushes see the
 * failure.
 */
const flush = (shard: OwnShard, end?: "final" | "released") =>
  Effect.suspend(() =>
    shard.failure === undefined ? write(shard, end) : Effect.failCause(shard.failure)
  ).pipe(
    Effect.tapCause((cause) =>
      Effect.suspend(() => {
        shard.failure ??= cause
        return release(shard, shard.permits)
      })
    ),
    shard.flushing.withPermit,
    Effect.uninterruptible
  )

/** `end`: nothing follows, because all is recorded (`final`) or the shard is left (`released`). */
const write = Effect.fnUntraced(function* (shard: OwnShard, end?: "final" | "released") {
  const { job, subject } = shard
  const list = shard.results.splice(0, resultsMax)
  if (list.length === 0 && end === undefined && (yield* isProven(shard))) return
  const final = end === "final"
  const body = { broadcast: job.broadcast, pushes: 0, ...(job.run && { run: job.run }) }
  // A broadcast is finished only after the removals that it caused: so they come before the final
  // outcome, unless they are postponed.
  const hasRemovals = list.some(({ result: { fate } }) => fate === "gone" || fate === "dead")
  const append = Effect.gen(function* () {
    // Before the append: the process may be frozen between the storage and the acknowledgement.
    const provenAt = yield* monotonicMillis
    shard.seq = yield* writeOutcome(subject, shard.seq, {
      ...body,
      results: list.map(({ result }) => result),
      final: final && !hasRemovals,
      ...(end === "released" && { released: true })
    })
    shard.provenAt = provenAt
  })
  if (!(yield* writeInOrder(job, list, append))) shard.isPostponed = true
  if (final && hasRemovals)
    shard.seq = yield* writeOutcome(subject, shard.seq, { ...body, results: [], final })
  yield* release(shard, list.filter(({ permit }) => permit).length)
})
