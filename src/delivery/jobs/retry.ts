// Retry job -> another attempt -> outcome. The message comes back by JetStream's redelivery, delayed by a nak; which attempt it is and when it
// is due stand in the push's last outcome, so a crash at any point forgets nothing.
import { Clock, Effect, Random, type Semaphore } from "effect"
import type { RetryJob } from "#domain/job.ts"
import type { StoredReason } from "#domain/reason.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { type Delivery, done, later, never } from "#nats/stream/consumer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { keys } from "#streams/buckets.ts"
import type { ChannelToken, UserToken } from "#streams/tokens.ts"
import { Sender, type Target } from "../push/send.ts"
import { makePayloads } from "../recipients/payloads.ts"
import { conflictLeaves, patiently } from "./patience.ts"
import { makeRecord, outcomeSubject } from "./record.ts"
import { unsentResult } from "./result.ts"

const drainingAfterMillis = 1_000

export const makeRetry = Effect.fnUntraced(function* (
  permits: Semaphore.Semaphore,
  draining: () => boolean
) {
  const log = yield* EventLog
  const buckets = yield* Buckets
  const sender = yield* Sender
  const record = yield* makeRecord
  const payload = yield* makePayloads

  /** The subscription as it is now; undefined when it was removed or replaced, or its user left the channel. */
  const targetOf = Effect.fnUntraced(function* (job: RetryJob) {
    const user = job.user as UserToken
    const [list, place] = yield* Effect.all(
      [
        buckets.get("subscriptions", keys.subscriptions(user)),
        buckets.get("registrations", keys.registration(job.channel as ChannelToken, user))
      ],
      { concurrency: "unbounded" }
    )
    const stored = list?.value.subscriptions[job.subscription]
    const current = stored?.seq === job.generation && place?.value.on === true
    return current ? ({ user, id: job.subscription, stored } satisfies Target) : undefined
  })

  const attempt = Effect.fnUntraced(function* (
    job: RetryJob,
    number: number,
    padded: Buffer | undefined,
    turn: Effect.Effect<void, "stop">,
    lastReason: StoredReason | undefined
  ) {
    const target = yield* targetOf(job)
    const at = yield* Clock.currentTimeMillis
    const unsent = (end: Parameters<typeof unsentResult>[3]) =>
      unsentResult({ user: job.user as UserToken, id: job.subscription }, number, at, end)
    if (target === undefined) return { result: unsent({ fate: "gone", reason: "left" }) }
    if (target.stored.suspended !== undefined)
      return { target, result: unsent({ fate: "dead", reason: "suspended" }) }
    if (at >= job.expiresAt)
      return { target, result: unsent({ fate: "expired", reason: "expired" }) }
    const attempted = yield* sender.send(
      target,
      job,
      () => sender.seal([target], padded)[0],
      turn,
      lastReason
    )
    const result = record.resultOf(
      target,
      job,
      attempted,
      number,
      yield* Clock.currentTimeMillis,
      yield* Random.next
    )
    return {
      target,
      result,
      unsent: attempted.kind === "deferred" && attempted.status === undefined
    }
  })

  const step = (
    job: RetryJob,
    number: number,
    expect: number,
    padded: Buffer | undefined,
    lastReason: StoredReason | undefined
  ) => {
    let held = 0
    // After the lane's slot, as everywhere: in the other order two could wait for each other.
    const turn = Effect.flatMap(permits.take(1), () => {
      held = 1
      return draining() ? Effect.fail("stop" as const) : Effect.void
    })
    return Effect.gen(function* () {
      const attempted = yield* Effect.result(attempt(job, number, padded, turn, lastReason))
      if (attempted._tag === "Failure") {
        if (attempted.failure === "stop") return later(drainingAfterMillis)
        return yield* attempted.failure
      }
      const { result, target, unsent } = attempted.success
      // Nothing has happened: a lane closed for an hour must not write an outcome a minute for each of its pushes.
      if (unsent === true && result.nextAt !== undefined) return later(result.nextAt - result.at)
      if (target !== undefined) yield* record.before(job, [{ target, result }])
      const body = {
        broadcast: job.broadcast,
        pushes: 0,
        results: [result],
        final: result.fate !== "retrying"
      }
      yield* record.outcome(outcomeSubject.push(job, job.user, job.subscription), expect, body)
      if (target !== undefined) {
        record.counted(job, [{ target, result }])
        // The job of a push to try again is this one.
        if (result.fate !== "retrying")
          yield* record.after(job, [{ target, result }]).pipe(patiently)
      }
      return result.nextAt === undefined ? done : later(result.nextAt - result.at)
    }).pipe(Effect.ensuring(Effect.suspend(() => permits.release(held))))
  }

  return Effect.fnUntraced(function* (delivery: Delivery) {
    const { message: job } = delivery
    if (job.type !== "retry/1")
      return never(job.type === "malformed" ? job.reason : "not a retry job")
    const now = yield* Clock.currentTimeMillis
    if (delivery.deliveryCount === 1 && now < job.firstNextAt) return later(job.firstNextAt - now)
    if (draining()) return later(drainingAfterMillis)
    const last = yield* log.last("work", outcomeSubject.push(job, job.user, job.subscription))
    const previous = last?.message.type === "outcome/1" ? last.message.results[0] : undefined
    if (previous !== undefined && previous.fate !== "retrying") {
      const target = yield* targetOf(job)
      if (target !== undefined) yield* record.ensured(job, [{ target, result: previous }])
      return done
    }
    const dueAt = previous?.nextAt ?? job.firstNextAt
    if (now < dueAt) return later(dueAt - now)
    const found = yield* payload(job.broadcast)
    if (found === undefined) return never("the broadcast is not in the log")
    const number = (previous?.attempt ?? job.attempts) + 1
    const lastReason = previous?.reason ?? job.reason
    return yield* step(job, number, last?.seq ?? 0, found.padded, lastReason).pipe(conflictLeaves)
  })
})
