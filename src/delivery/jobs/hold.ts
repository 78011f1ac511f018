// Jobs of a broadcast that is paused, or was meanwhile. A pause acknowledges jobs, and a resume
// appends them again, under the number of its run. Appended twice, a job is there once.
import * as Effect from "effect/Effect"
import type { Message } from "#domain/messages/messages.ts"
import type { NatsUnavailable } from "#nats/connection/errors.ts"
import { type Ack, type Delivery, done } from "#nats/stream/consumer.ts"
import type { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { laterPostponed } from "./record/follow-ups.ts"
import type { JobTools } from "./tools.ts"

type Job = Message<"shard/1" | "retry/1">

/** Appends a job for a later run of its broadcast. */
export const handOn = (log: EventLog["Service"], subject: string, job: Job, run: number) => {
  const { type, ...body } = job
  return log.once("work", {
    subject: subjects.jobOfRun(subject, run),
    type,
    body: { ...body, run } as typeof body
  })
}

/**
 * Returns the acknowledgement of a delivery whose pushes must not be sent now. Undefined: they are
 * sent, or end as cancelled.
 * `isStored`: whether all that follows from stored outcomes is stored, too.
 */
export type Hold = (
  delivery: Delivery,
  job: Job,
  isStored?: Effect.Effect<boolean, NatsUnavailable>
) => Effect.Effect<Ack | undefined, NatsUnavailable>

export const makeHold = (
  log: EventLog["Service"],
  { orderOf, runOf }: Pick<JobTools, "orderOf" | "runOf">
): Hold =>
  Effect.fnUntraced(function* ({ deliveryCount, subject }, job, isStored = Effect.succeed(true)) {
    const order = orderOf(job)
    if (order === "send" || order === "cancel") return undefined
    if (!(yield* isStored)) return laterPostponed(deliveryCount)
    // The resume may have looked for jobs before this one was stored.
    if (order === "old") yield* handOn(log, subject, job, runOf(job.broadcast))
    return done
  })
