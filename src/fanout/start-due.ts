// Starts broadcasts that were accepted before, at their time. Every process with a planner does:
// each start names the change that it follows, so NATS stores one, and no lease is waited for.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { type Scheduled, type States, soonMillis } from "#broadcasts/states.ts"
import { runForever } from "#nats/connection/again.ts"
import type { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"

/** A start that was stored, or refused because of another one, is heard of within this time. */
const heardMillis = 50
/** Starts that are appended at once: they are stored as one batch. */
const startsAtOnce = 128

interface Starter {
  readonly log: EventLog["Service"]
  readonly states: States["Service"]
}

const startOne = Effect.fnUntraced(function* (
  { log }: Starter,
  { broadcast, channel, schedule, seq }: Scheduled
) {
  const at = yield* Clock.currentTimeMillis
  const body = { broadcast, channel, run: 0, by: "schedule", at, schedule }
  const subject = subjects.state(broadcast)
  // After a conflict, another process started the broadcast, or somebody changed it.
  yield* Effect.catchTag(
    log.append("log", { subject, type: "broadcast.started/1", body, expect: seq }),
    "AppendConflict",
    () => Effect.void
  )
})

/** Starts what is due, again and again, also after a failure. */
export const startDue = (tools: Starter) =>
  Effect.andThen(
    tools.states.known,
    runForever(
      startEach(tools),
      "500 millis",
      makeRateLimitedLog("scheduled broadcasts cannot be started", Effect.logError)
    )
  )

const startEach = Effect.fnUntraced(function* (tools: Starter) {
  const { states } = tools
  while (true) {
    const now = yield* Clock.currentTimeMillis
    const scheduled = yield* states.scheduled
    const due = scheduled.filter(({ startsAt }) => startsAt <= now)
    yield* Effect.forEach(due, (each) => startOne(tools, each), {
      concurrency: startsAtOnce,
      discard: true
    })
    const first = scheduled.reduce((least, { startsAt }) => Math.min(least, startsAt), Infinity)
    const waitMillis = due.length > 0 ? heardMillis : Math.min(first - now, soonMillis)
    yield* Effect.raceFirst(Effect.sleep(waitMillis), states.scheduling)
  }
})
