// The jobs that follow a shard. All at once, they would wait in front of those of broadcasts that
// come later.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { shardBehind } from "#domain/job.ts"
import type { Message } from "#domain/messages/messages.ts"
import type { States } from "#nats/follower/states.ts"
import type { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"

/** Jobs that follow a shard of a broadcast with a rate whose pushes wait for no turn any more. */
const overMax = 16

/**
 * Appends the jobs that follow a shard which begins or has ended. Those of a broadcast with a rate
 * follow when its last push has its turn, or it has ended: so no more are there at once than have
 * pushes that wait for turns. Appended twice, a job is there once.
 */
export const appendNext = Effect.fnUntraced(function* (
  log: EventLog["Service"],
  { orderOf }: Pick<States["Service"], "orderOf">,
  { type, ...job }: Message<"shard/1">,
  hasEnded: boolean
) {
  const { broadcast, expiresAt, rate, run, shard, stride } = job
  if (stride === undefined || hasEnded !== (rate !== undefined)) return
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
