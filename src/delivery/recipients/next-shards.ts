// The jobs that follow a shard. All at once, they would wait in front of those of broadcasts that
// come later.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { States } from "#broadcasts/states.ts"
import { shardBehind } from "#domain/job.ts"
import type { Message } from "#domain/messages.ts"
import type { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"

/** Jobs that follow a shard of a broadcast with a rate whose pushes wait for no turn any more. */
const overMax = 16

const append = Effect.fnUntraced(function* (
  log: EventLog["Service"],
  { orderOf }: Pick<States["Service"], "orderOf">,
  { type, ...job }: Message<"shard/1">,
  stride: number,
  hasEnded: boolean
) {
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

/**
 * Appends the jobs that follow a shard which begins or has ended. Those of a broadcast with a rate
 * follow when its last push has its turn, or it has ended: so no more are there at once than have
 * pushes that wait for turns. Appended twice, a job is there once. `Effect.void`: none follows now.
 */
export const appendNext = (
  log: EventLog["Service"],
  states: Pick<States["Service"], "orderOf">,
  job: Message<"shard/1">,
  hasEnded: boolean
) =>
  job.stride === undefined || hasEnded !== (job.rate !== undefined)
    ? Effect.void
    : append(log, states, job, job.stride, hasEnded)

/** Runs both at the same time. If the other is `Effect.void`, no fiber is started: it costs CPU. */
export const alongside = <A, E, R, F, S>(
  effect: Effect.Effect<A, E, R>,
  other: Effect.Effect<void, F, S>
): Effect.Effect<A, E | F, R | S> =>
  other === Effect.void
    ? effect
    : Effect.map(Effect.all([effect, other], { concurrency: 2 }), ([result]) => result)
