// Ends or keeps a job on which its worker dies again and again. The push of a retry job is dead,
// with a dead letter, so that its broadcast finishes, the audit shows it, and a redrive may send
// it. The job of a shard is kept, because the worker may not even be able to read its pushes. Both
// do as little as can be: the defect may be in anything else.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { monotonicMillis } from "#clock/clocks.ts"
import { type Delivery, keep, never } from "#nats/stream/consumer.ts"
import type { EventLog } from "#nats/stream/event-log.ts"
import type { UserToken } from "#streams/tokens.ts"
import { appendNext } from "./next-jobs.ts"
import { conflictLeaves, deadLetter, defectEnd, outcomeSubject, unsentResult } from "./record.ts"
import { lastResult, nextAttemptOf, withFormer } from "./result.ts"
import type { JobTools } from "./tools.ts"

/** Returns a function that records the end, and how to acknowledge the job. */
export const makeGiveUp = (log: EventLog["Service"]) =>
  Effect.fnUntraced(function* ({ message: job }: Delivery, reason: string) {
    if (job.type !== "retry/1") return never(reason)
    const subject = outcomeSubject.retry(job)
    const last = yield* log.last("work", subject)
    const previous = lastResult(last)
    if (previous !== undefined && previous.fate !== "retrying") return never(reason)
    const next = nextAttemptOf(job, last, yield* monotonicMillis)
    const at = yield* Clock.currentTimeMillis
    const target = { id: job.subscription, user: job.user as UserToken }
    const result = withFormer(job, next, unsentResult(target, next.number - 1, at, defectEnd))
    const { attempts: _, firstRun: __, firstWaitMillis: ___, type: ____, ...ref } = job
    yield* log.once("work", deadLetter(ref, result, job.generation))
    const outcome = { broadcast: job.broadcast, pushes: 0, results: [result], final: true, at }
    const body = { ...outcome, ...(next.firstRun && { run: next.firstRun }) }
    yield* log.append("work", { subject, type: "outcome/1", body, expect: next.seq })
    return never(reason)
  }, conflictLeaves)

/**
 * Returns a function that keeps the job of a shard: its pushes are sent once the defect is mended.
 * The shards behind it do not wait for that.
 */
export const makeKeepShard = (log: EventLog["Service"], states: Pick<JobTools, "orderOf">) =>
  Effect.fnUntraced(function* ({ message: job }: Delivery) {
    if (job.type === "shard/1") yield* appendNext(log, states, job, job.rate !== undefined)
    return keep
  })
