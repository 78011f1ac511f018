// Broadcasts that start later: says in LOG that they wait, and starts what is due. Every process
// with a planner appends the starts: each start names the change that it follows, so NATS stores
// one, and no lease is waited for.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { type Scheduled, States, soonMillis } from "#broadcasts/states.ts"
import { scheduledMax, scheduledOfOneMax } from "#domain/broadcast-start.ts"
import type { BroadcastRef } from "#domain/job.ts"
import { runForever } from "#nats/connection/again.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { subjects } from "#streams/subjects.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { isOwn } from "./read-broadcast.ts"

/**
 * Appends that a broadcast waits for its start, unless somebody has changed it already. Returns the
 * reason why it must not wait; undefined: it waits.
 */
export const schedule = Effect.fnUntraced(function* (
  stored: Stored,
  { broadcast, channel }: BroadcastRef,
  by: string,
  later: { readonly at: string }
) {
  if (yield* isTooMany(stored, by)) return tooMany
  const at = yield* Clock.currentTimeMillis
  const body = { broadcast, channel, run: 0, by, at, schedule: later }
  const subject = subjects.state(broadcast)
  yield* (yield* EventLog).once("log", { subject, type: "broadcast.scheduled", body })
  return undefined
})

const tooMany =
  `${scheduledMax} broadcasts wait for their start already, ` +
  `or ${scheduledOfOneMax} of this publisher`

/**
 * Whether a broadcast that starts later must not wait. What a gateway accepted may. A recreated
 * consumer reads broadcasts again: those that wait already, and those that were rejected, although
 * there may be room now.
 */
const isTooMany = Effect.fnUntraced(function* (stored: Stored, publisher: string) {
  if (isOwn(stored)) return false
  const log = yield* EventLog
  if ((yield* log.last("log", subjects.state(stored.seq))) !== undefined) return false
  if ((yield* log.last("log", subjects.rejected(stored.seq))) !== undefined) return true
  return (yield* States).isFull(publisher)
})

/**
 * A start that was stored, or refused because of another one, is heard of within this time. Where
 * nothing is heard, the next wait is twice as long.
 */
const heardMillis = 50

/** Starts that are appended at once: they are stored as one batch. */
const startsAtOnce = 128

const failedStarts = makeRateLimitedLog("scheduled broadcasts cannot be started", Effect.logError)

/** Starts what is due, again and again, also after a failure. */
export const startDue = Effect.gen(function* () {
  yield* (yield* States).known
  return yield* runForever(startEach, "500 millis", failedStarts)
})

const startEach = Effect.gen(function* () {
  const states = yield* States
  let hearsMillis = heardMillis
  let former: ReadonlySet<number> = new Set()
  while (true) {
    const now = yield* Clock.currentTimeMillis
    const scheduled = yield* states.scheduled
    const due = scheduled.filter(({ startsAt }) => startsAt <= now)
    yield* Effect.forEach(due, startOne, { concurrency: startsAtOnce, discard: true })
    const first = scheduled.reduce(
      (least, { startsAt }) => (startsAt > now ? Math.min(least, startsAt) : least),
      Infinity
    )
    const areNew = due.some(({ seq }) => !former.has(seq))
    hearsMillis = areNew ? heardMillis : Math.min(2 * hearsMillis, soonMillis)
    former = new Set(due.map(({ seq }) => seq))
    const waitMillis = Math.min(due.length > 0 ? hearsMillis : soonMillis, first - now, soonMillis)
    yield* Effect.raceFirst(Effect.sleep(waitMillis), states.scheduling)
  }
})

const startOne = Effect.fnUntraced(function* ({ broadcast, channel, schedule, seq }: Scheduled) {
  const log = yield* EventLog
  const at = yield* Clock.currentTimeMillis
  const body = { broadcast, channel, run: 0, by: "schedule", at, schedule }
  const subject = subjects.state(broadcast)
  // After a conflict, another process started the broadcast, or somebody changed it.
  yield* Effect.catchTag(
    log.append("log", { subject, type: "broadcast.started", body, expect: seq }),
    "AppendConflict",
    () => Effect.void
  )
})
