// The jobs that a job leads to: those of the shards behind it, and the job itself in a later run of
// its broadcast. A pause acknowledges jobs, and a resume appends them again, under the number of
// its run. Appended twice, a job is there once.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { States } from "#broadcasts/states.ts"
import type { Order } from "#domain/broadcast-state.ts"
import { shardBehind } from "#domain/job.ts"
import type { Message } from "#domain/messages/table.ts"
import type { NatsUnavailable } from "#nats/connection/errors.ts"
import { type Delivery, done } from "#nats/stream/consumer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { waitOf } from "./result.ts"
import { laterPostponed } from "./writes.ts"

/** Jobs that follow a shard of a broadcast with a rate whose pushes wait for no turn any more. */
const overMax = 16

/**
 * Appends the jobs that follow a shard which begins or has ended. All at once, they would wait in
 * front of those of broadcasts that come later. Those of a broadcast with a rate follow when its
 * last push has its turn, or it has ended, or cannot be read: so no more are there at once than
 * have pushes that wait for turns. `Effect.void`: none follows now.
 */
export const appendNext = (job: Message<"shard">, hasEnded: boolean) =>
  job.stride === undefined || hasEnded !== (job.rate !== undefined)
    ? Effect.void
    : append(job, job.stride, hasEnded)

const append = Effect.fnUntraced(function* (
  { type, ...job }: Message<"shard">,
  stride: number,
  hasEnded: boolean
) {
  const log = yield* EventLog
  const { orderOf } = yield* States
  const { broadcast, expiresAt, rate, run, shard } = job
  const isOver =
    hasEnded && (orderOf(job) === "cancel" || (yield* Clock.currentTimeMillis) >= expiresAt)
  for (let i = 1; i <= (isOver ? overMax : 1); i++) {
    const next = shardBehind(shard, i * stride)
    if (next === undefined) return
    const subject = (rate === undefined ? subjects.shard : subjects.limitedShard)(broadcast, next)
    yield* log.once("work", {
      subject: run === undefined ? subject : subjects.jobOfRun(subject, run),
      type,
      body: { ...job, shard: next }
    })
  }
})

/** Runs both at the same time. If the other is `Effect.void`, no fiber is started: it costs CPU. */
export const alongside = <A, E, R, F, S>(
  effect: Effect.Effect<A, E, R>,
  other: Effect.Effect<void, F, S>
): Effect.Effect<A, E | F, R | S> =>
  other === Effect.void
    ? effect
    : Effect.map(Effect.all([effect, other], { concurrency: 2 }), ([result]) => result)

/** Whether no push of a job must be sent: its broadcast is paused, or was since it was appended. */
export const isPausedOrOld = (order: Order): boolean => order === "wait" || order === "old"

/**
 * Returns the acknowledgement of a delivery of a job that is paused or old. It fits, too, where the
 * broadcast was resumed or cancelled since: both have a run of their own, with jobs of their own.
 * `isStored`: whether all that follows from stored outcomes is stored, too.
 */
export const endPaused = Effect.fnUntraced(function* <R>(
  { at, deliveryCount, subject }: Delivery,
  job: Job,
  isStored: Effect.Effect<boolean, NatsUnavailable, R>
) {
  const { orderOf, runOf } = yield* States
  const order = orderOf(job)
  if (!(yield* isStored)) return laterPostponed(deliveryCount)
  // The resume may have looked for jobs before this one was stored.
  if (order === "old") yield* appendForRun({ job, subject, storedAt: at }, runOf(job.broadcast))
  return done
})

type Job = Message<"shard" | "retry">

/** A job, its subject, and when the server stored it. */
interface StoredJob {
  readonly job: Job
  readonly subject: string
  readonly storedAt: number
}

/** Appends a job for a later run of its broadcast. A retry waits for what is left of its wait. */
export const appendForRun = Effect.fnUntraced(function* (
  { job, storedAt, subject }: StoredJob,
  run: number
) {
  const { type, ...body } = job
  const now = yield* Clock.currentTimeMillis
  const firstWaitMillis =
    job.type === "retry"
      ? waitOf({ job, storedAt, isFirstDelivery: false }, undefined, now)
      : undefined
  yield* (yield* EventLog).once("work", {
    subject: subjects.jobOfRun(subject, run),
    type,
    body: { ...body, run, ...(firstWaitMillis !== undefined && { firstWaitMillis }) } as typeof body
  })
})
