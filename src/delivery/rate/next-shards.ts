// The jobs that follow a shard of a broadcast with a rate. All at once, they would wait for hours,
// in front of those of broadcasts that come later.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { shardBehind, shardsAtOnce } from "#domain/job.ts"
import type { Message } from "#domain/messages/messages.ts"
import type { States } from "#nats/follower/states.ts"
import type { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"

/** Jobs that follow a shard of a broadcast whose pushes wait for no turn any more. */
const endedMax = 16

/** Appends the jobs that follow a shard that is sent. Appended twice, a job is there once. */
export const appendNext = Effect.fnUntraced(function* (
  log: EventLog["Service"],
  { orderOf }: Pick<States["Service"], "orderOf">,
  { type, ...job }: Message<"shard/1">
) {
  const { broadcast, expiresAt, rate, run, shard } = job
  if (rate === undefined) return
  const hasEnded = orderOf(job) === "cancel" || (yield* Clock.currentTimeMillis) >= expiresAt
  for (let i = 1; i <= (hasEnded ? endedMax : 1); i++) {
    const next = shardBehind(shard, i * shardsAtOnce(rate))
    if (next === undefined) return
    const subject = subjects.limitedShard(broadcast, next)
    yield* log.once("work", {
      subject: run === undefined ? subject : subjects.jobOfRun(subject, run),
      type,
      body: { ...job, shard: next }
    })
  }
})
