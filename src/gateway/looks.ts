// Records what operators look at of a user, for `bellcast audit --user`.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { EventLog } from "#nats/stream/event-log.ts"
import { Space } from "#nats/watch/space.ts"
import { streams } from "#streams/index.ts"
import { subjects } from "#streams/subjects.ts"
import type { UserToken } from "#streams/tokens.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import type { Call } from "./http/request.ts"

/** WORK stores one look of an operator at the same in this time. */
const everyMillis = 60_000
const writeTimeout = "2 seconds"

const warn = makeRateLimitedLog("a look of an operator at a user is in this log alone")

/**
 * Records that the caller looks at a user: in the log, and in WORK for as long as pushes are there.
 * `broadcast`: at the pushes of this one alone. A look never fails for want of room or time in WORK.
 */
export const recordLook = Effect.fnUntraced(function* (
  { caller, isAbout }: Call,
  user: UserToken,
  broadcast?: number
) {
  isAbout(user)
  if ((yield* Space).isFull([streams.work.name])) return yield* warn({ reason: "WORK is full" })
  const at = yield* Clock.currentTimeMillis
  const minute = Math.floor(at / everyMillis)
  const { id: by, user: operator } = caller!
  const subject = subjects.look(user, operator, broadcast ?? "user", minute)
  const body = { by, at, ...(broadcast !== undefined && { broadcast }) }
  const log = yield* EventLog
  yield* log.once("work", { subject, type: "look/1", body }).pipe(
    Effect.timeout(writeTimeout),
    Effect.catch((err) => warn({ err }))
  )
})
