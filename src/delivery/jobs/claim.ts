// The worker that has a shard: its outcomes in WORK say so, and the one that claims the shard.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { monotonicMillis } from "#clock/monotonic.ts"
import type { ShardJob } from "#domain/job.ts"
import { type PushResult, pushKey } from "#domain/outcome.ts"
import type { EventLog } from "#nats/stream/event-log.ts"
import type { UserToken } from "#streams/tokens.ts"
import { removedData, type Target } from "../push/target.ts"
import { attemptLimitsOf } from "../push/transport/exchange.ts"
import type { Audience } from "../recipients/audience.ts"
import type { Recorded } from "./record/follow-ups.ts"
import { outcomeSubject, provenMillis, type Record } from "./record/record.ts"

/** The outcomes that earlier deliveries of a job recorded. */
export interface Past {
  /** Sequence of the last outcome; 0: none. */
  readonly seq: number
  /** Pushes that the outcomes say the shard holds. */
  readonly declared: number
  /** Nothing is left to send. */
  readonly final: boolean
  /** The worker that wrote the last outcome sends no more. */
  readonly released: boolean
  /** When the server stored the last outcome. */
  readonly at: number
  /** Removals, strikes or retries of these outcomes are not stored yet. */
  readonly isPostponed: boolean
  /** By {@link pushKey}. */
  readonly results: ReadonlyMap<string, PushResult>
  /** The runs of the broadcast in which these were recorded, by the same keys. */
  readonly runs: ReadonlyMap<string, number>
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

/** A target in place of a subscription that was removed. */
const removedTarget = ({ subscription, user }: PushResult): Target => ({
  user: user as UserToken,
  id: subscription,
  stored: { seq: 0, lastModified: 0, data: removedData }
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
