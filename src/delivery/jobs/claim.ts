// Claims a shard for this delivery of its job, and reads what earlier deliveries recorded.
import { Effect } from "effect"
import { monotonicMillis } from "#clock/monotonic.ts"
import type { ShardJob } from "#domain/job.ts"
import { type PushResult, pushKey } from "#domain/outcome.ts"
import type { EventLog } from "#nats/stream/event-log.ts"
import { streams } from "#streams/index.ts"
import type { UserToken } from "#streams/tokens.ts"
import type { Target } from "../push/target.ts"
import { outcomeSubject, type Record } from "./record.ts"
import type { Recorded } from "./result.ts"

const { ackWaitMillis } = streams.work.consumers.deliver

/**
 * For so long after an outcome of a shard no other worker can have the shard: a worker reports
 * progress at least every third of the ack wait, and JetStream waits all of it after a report.
 */
export const provenMillis = (2 / 3) * ackWaitMillis

/** The outcomes that earlier deliveries of a job recorded. */
export interface Past {
  /** Sequence of the last outcome; 0: none. */
  readonly seq: number
  /** Pushes that the outcomes say the shard holds. */
  readonly declared: number
  /** Nothing is left to send. */
  readonly final: boolean
  /** Removals, strikes or retries of these outcomes are not stored yet. */
  readonly owes: boolean
  /** By {@link pushKey}. */
  readonly results: ReadonlyMap<string, PushResult>
}

/** A shard that this worker has. */
export interface Claimed extends Past {
  readonly final: false
  /** When the append of the claim began, by the monotonic clock. */
  readonly claimedAt: number
}

/** A shard of which nothing is left to send. */
export interface Ended extends Past {
  readonly final: true
}

const endedOf = (past: Past): Ended => ({ ...past, final: true })

const nothing: Past = { seq: 0, declared: 0, final: false, owes: false, results: new Map() }

/** A target in place of a subscription that was removed. */
const removedTarget = ({ subscription, user }: PushResult): Target => ({
  user: user as UserToken,
  id: subscription,
  stored: {
    seq: 0,
    lastModified: 0,
    data: { endpoint: "https://gone.invalid/", keys: { auth: "", p256dh: "" } }
  }
})

/** Returns the past results of which removals and retry jobs may be missing. */
const unfinished = (past: Past, targets: ReadonlyArray<Target>): ReadonlyArray<Recorded> => {
  const present = new Map(targets.map((target) => [pushKey(target.user, target.id), target]))
  return [...past.results].flatMap(([key, result]): ReadonlyArray<Recorded> => {
    const target = present.get(key)
    if (target !== undefined) return [{ target, result }]
    // A removed subscription still needs a last outcome. Its retry job finds it removed and records
    // that.
    return result.fate === "retrying" ? [{ target: removedTarget(result), result }] : []
  })
}

const readPast = Effect.fnUntraced(function* (log: EventLog["Service"], subject: string) {
  if ((yield* log.last("work", subject)) === undefined) return nothing
  let past = nothing
  const results = new Map<string, PushResult>()
  yield* log.replay("work", [subject], ({ message, seq }) =>
    Effect.sync(() => {
      if (message.type !== "outcome/1") return
      for (const result of message.results)
        results.set(pushKey(result.user, result.subscription), result)
      const declared = past.declared + message.pushes
      past = { ...past, seq, declared, final: message.final, results }
    })
  )
  return past
})

/** Returns functions that claim a shard, unless nothing of it is left to send. */
export const makeClaim = (log: EventLog["Service"], record: Record) => {
  /**
   * Writes the size of the shard before anything is sent: where that cannot be written, outcomes
   * could not be either. Fails with AppendConflict when another worker has the shard.
   */
  const claim = Effect.fnUntraced(function* (
    job: ShardJob,
    past: Past,
    targets: ReadonlyArray<Target>
  ) {
    const isNew = ({ id, user }: Target) => !past.results.has(pushKey(user, id))
    const total = past.results.size + targets.filter(isNew).length
    const claimedAt = yield* monotonicMillis
    const seq = yield* record.outcome(outcomeSubject.shard(job, job.shard), past.seq, {
      broadcast: job.broadcast,
      pushes: total - past.declared,
      results: [],
      final: false
    })
    const claimed: Claimed = { ...past, final: false, seq, claimedAt }
    return claimed
  })

  /** The past of a shard, after the writes that a killed delivery left out. */
  const readAndEnsure = Effect.fnUntraced(function* (
    job: ShardJob,
    targets: ReadonlyArray<Target>
  ) {
    const past = yield* readPast(log, outcomeSubject.shard(job, job.shard))
    // An earlier delivery may have died between the outcome and what follows from it.
    const isStored = yield* record.ensured(job, unfinished(past, targets))
    return { ...past, owes: !isStored }
  })

  /** For a shard of which earlier deliveries may have recorded something. */
  const again = Effect.fnUntraced(function* (job: ShardJob, targets: ReadonlyArray<Target>) {
    const past = yield* readAndEnsure(job, targets)
    return past.final ? endedOf(past) : yield* claim(job, past, targets)
  })

  /**
   * Claims without reading; a conflict shows that another delivery began. Unless that one finished,
   * this one leaves the shard: the other may be sending, and a claim over it would send twice what
   * it has not recorded. If it died, the ack wait brings the job back.
   */
  const first = (job: ShardJob, targets: ReadonlyArray<Target>) =>
    claim(job, nothing, targets).pipe(
      Effect.catchTag("AppendConflict", (conflict) =>
        Effect.flatMap(readAndEnsure(job, targets), (past) =>
          past.final ? Effect.succeed(endedOf(past)) : Effect.fail(conflict)
        )
      )
    )

  return { again, first }
}
