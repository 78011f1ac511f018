// Shard job -> pushes -> outcomes. A push holds a permit from before it is sent until its outcome is stored, so the permits are the most that a
// crash can send twice.
import { type Cause, Clock, Effect, Fiber, Latch, Random, Semaphore } from "effect"
import { Settings } from "#config"
import type { ShardJob } from "#domain/job.ts"
import type { PushResult } from "#domain/outcome.ts"
import type { AppendConflict, NatsUnavailable } from "#nats/connection/errors.ts"
import { type Delivery, done, later, never } from "#nats/stream/consumer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { UserToken } from "#streams/tokens.ts"
import { type Sealed, Sender, type Target } from "../push/send.ts"
import { makeAudience } from "../recipients/audience.ts"
import { makePayloads } from "../recipients/payloads.ts"
import { conflictLeaves, patiently } from "./patience.ts"
import { makeRecord, outcomeSubject } from "./record.ts"
import { type Recorded, unsentResult } from "./result.ts"
import { makeStarts } from "./starts.ts"

/** Results in one outcome message: 64 of about 200 bytes are a third of what WORK takes. */
const resultsMax = 64
/** How long a result waits for others to be recorded with. */
const flushMillis = 20
/** Bodies encrypted in one go. One at a time, between two sockets, each costs a fifth more: nothing is left in the processor's caches. */
const sealedAtOnce = 32

const pushKey = (user: string, id: string) => `${user}.${id}`

/** What earlier deliveries of this job have recorded. */
interface Past {
  readonly seq: number
  readonly declared: number
  readonly final: boolean
  readonly results: ReadonlyMap<string, PushResult>
}

/** Stands for a subscription that is no more. */
const nobody = ({ subscription, user }: PushResult): Target => ({
  user: user as UserToken,
  id: subscription,
  stored: {
    seq: 0,
    lastModified: 0,
    data: { endpoint: "https://gone.invalid/", keys: { auth: "", p256dh: "" } }
  }
})

const nothing: Past = { seq: 0, declared: 0, final: false, results: new Map() }

/** `draining()` turns true when the process is told to stop: what is in hand is finished, the rest is left to others. */
export const makeShard = Effect.fnUntraced(function* (
  permits: Semaphore.Semaphore,
  draining: () => boolean
) {
  const log = yield* EventLog
  const sender = yield* Sender
  const record = yield* makeRecord
  const payload = yield* makePayloads
  const audience = yield* makeAudience
  const starts = yield* makeStarts(sealedAtOnce)
  const { unrecordedPushesMax } = yield* Settings
  // Two large shards at a time, or many small ones: a crowd of large ones would share out the permits until each outcome held a handful.
  const admission = yield* Semaphore.make(2 * unrecordedPushesMax)

  const pastOf = Effect.fnUntraced(function* (subject: string) {
    if ((yield* log.last("work", subject)) === undefined) return nothing
    let past = nothing
    const results = new Map<string, PushResult>()
    yield* log.replay("work", [subject], ({ message, seq }) =>
      Effect.sync(() => {
        if (message.type !== "outcome/1") return
        for (const result of message.results)
          results.set(pushKey(result.user, result.subscription), result)
        past = { seq, declared: past.declared + message.pushes, final: message.final, results }
      })
    )
    return past
  })

  /** What follows from the outcomes: an earlier delivery may have died before it wrote that. */
  const ensure = Effect.fnUntraced(function* (
    job: ShardJob,
    past: Past,
    targets: ReadonlyArray<Target>
  ) {
    const present = new Map(targets.map((target) => [pushKey(target.user, target.id), target]))
    const list = [...past.results].flatMap(([key, result]): ReadonlyArray<Recorded> => {
      const target = present.get(key)
      if (target !== undefined) return [{ target, result }]
      // One who left meanwhile still needs a last outcome; the retry will find nobody and say so.
      return result.fate === "retrying" ? [{ target: nobody(result), result }] : []
    })
    yield* record.ensured(job, list)
  })

  /**
   * Claims the shard and tells its size, before anything is sent: where that cannot be written, the
   * fates could not either; and whoever has the shard already is not run over. Returns the sequence
   * of the claim.
   */
  const claim = (job: ShardJob, past: Past, targets: ReadonlyArray<Target>) => {
    const isNew = ({ id, user }: Target) => !past.results.has(pushKey(user, id))
    const total = past.results.size + targets.filter(isNew).length
    return record.outcome(outcomeSubject.shard(job, job.shard), past.seq, {
      broadcast: job.broadcast,
      pushes: total - past.declared,
      results: [],
      final: false
    })
  }

  /** Claims a shard of which earlier deliveries may have recorded something; undefined: it is done. */
  const claimAgain = Effect.fnUntraced(function* (job: ShardJob, targets: ReadonlyArray<Target>) {
    const past = yield* pastOf(outcomeSubject.shard(job, job.shard))
    yield* ensure(job, past, targets)
    if (past.final) return undefined
    return { ...past, seq: yield* claim(job, past, targets) }
  })

  /**
   * Claims without a look, as if nobody had begun; a conflict tells that somebody has. Also on what
   * looks like a first delivery: a killed server forgets the last deliveries and acknowledgements of
   * its consumers.
   */
  const claimFirst = (job: ShardJob, targets: ReadonlyArray<Target>) =>
    claim(job, nothing, targets).pipe(
      Effect.map((seq): Past | undefined => ({ ...nothing, seq })),
      Effect.catchTag("AppendConflict", () => claimAgain(job, targets))
    )

  const run = Effect.fnUntraced(function* (
    job: ShardJob,
    isFirst: boolean,
    targets: ReadonlyArray<Target>,
    padded: Buffer | undefined
  ) {
    const past = yield* (isFirst ? claimFirst : claimAgain)(job, targets)
    if (past === undefined) return done
    const subject = outcomeSubject.shard(job, job.shard)
    const todo = targets.filter(({ id, user }) => !past.results.has(pushKey(user, id)))
    const flushing = yield* Semaphore.make(1)
    const results = yield* Latch.make()
    const buffer: Array<Recorded & { readonly permit: boolean }> = []
    let { seq } = past
    let held = 0
    let left = 0
    let broken: Cause.Cause<AppendConflict | NatsUnavailable> | undefined

    const giveBack = (count: number) => {
      held -= count
      return permits.release(count)
    }

    const write = Effect.fnUntraced(function* (final: boolean) {
      const list = buffer.splice(0, resultsMax)
      if (list.length === 0 && !final) return
      const body = { broadcast: job.broadcast, pushes: 0 }
      yield* record.before(job, list)
      // A broadcast is not called finished while a subscription that it found dead can still be read.
      const follows = list.some(({ result: { fate } }) => fate === "gone" || fate === "dead")
      seq = yield* record.outcome(subject, seq, {
        ...body,
        results: list.map(({ result }) => result),
        final: final && !follows
      })
      record.counted(job, list)
      yield* record.after(job, list).pipe(patiently)
      if (final && follows)
        seq = yield* record.outcome(subject, seq, { ...body, results: [], final })
      yield* giveBack(list.filter(({ permit }) => permit).length)
    })

    /** Once a write has failed all that follow fail, nothing more is sent, and whoever waits for a permit gets one and sees it. */
    const flush = (final: boolean) =>
      Effect.suspend(() => (broken === undefined ? write(final) : Effect.failCause(broken))).pipe(
        Effect.tapCause((cause) =>
          Effect.suspend(() => {
            broken ??= cause
            return giveBack(held)
          })
        ),
        flushing.withPermit,
        Effect.uninterruptible
      )

    const turn = Effect.flatMap(permits.take(1), () => {
      held += 1
      return broken === undefined && !draining()
        ? Effect.void
        : Effect.andThen(giveBack(1), Effect.fail("stop" as const))
    })

    const batches: Array<Array<Sealed>> = []
    /** Encrypted when its turn comes, with its batch: before that, it would hold up the first pushes. */
    const bodyOf = (i: number): Sealed => {
      const start = i - (i % sealedAtOnce)
      batches[start] ??= [...sender.seal(todo.slice(start, start + sealedAtOnce), padded)]
      const body = batches[start][i - start]
      batches[start][i - start] = undefined
      return body
    }

    const push = Effect.fnUntraced(function* (target: Target, i: number) {
      yield* started(i)
      const now = yield* Clock.currentTimeMillis
      if (now >= job.expiresAt) {
        const result = unsentResult(target, 0, now, { fate: "expired", reason: "expired" })
        buffer.push({ target, result, permit: false })
      } else {
        const attempted = yield* Effect.result(sender.send(target, job, () => bodyOf(i), turn))
        if (attempted._tag === "Failure") {
          left += 1
          return
        }
        const result = record.resultOf(
          target,
          job,
          attempted.success,
          1,
          yield* Clock.currentTimeMillis,
          yield* Random.next
        )
        buffer.push({ target, result, permit: true })
      }
      if (buffer.length >= resultsMax) yield* flush(false)
      else if (buffer.length > 0) yield* results.open
    })

    // Without it, results waiting here would keep permits that the pushes still to come need: nobody could go on.
    const flusher = yield* Effect.forkChild(
      results.await.pipe(
        Effect.andThen(results.close),
        Effect.andThen(Effect.delay(flush(false), flushMillis)),
        Effect.forever
      )
    )
    const started = starts(todo.length)
    yield* Effect.forEach(todo, push, { concurrency: unrecordedPushesMax, discard: true }).pipe(
      Effect.andThen(Fiber.interrupt(flusher)),
      Effect.andThen(
        Effect.whileLoop({
          while: () => buffer.length > resultsMax,
          body: () => flush(false),
          step: () => {}
        })
      ),
      Effect.andThen(Effect.suspend(() => flush(left === 0))),
      Effect.ensuring(Fiber.interrupt(flusher)),
      Effect.ensuring(Effect.suspend(() => giveBack(held)))
    )
    return left === 0 ? done : later(0)
  })

  return Effect.fnUntraced(function* (delivery: Delivery) {
    const { message } = delivery
    if (message.type !== "shard/1")
      return never(message.type === "malformed" ? message.reason : "not a shard job")
    const found = yield* payload(message.broadcast)
    if (found === undefined) return never("the broadcast is not in the log")
    const targets = yield* audience(message)
    const weight = Math.min(Math.max(1, targets.length), unrecordedPushesMax)
    return yield* run(message, delivery.deliveryCount === 1, targets, found.padded).pipe(
      conflictLeaves,
      admission.withPermits(weight)
    )
  })
})
