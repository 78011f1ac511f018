// Has users erased: appends the commands, and waits for the facts that it is done.
import * as Clock from "effect/Clock"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { EventLog } from "#nats/stream/event-log.ts"
import { endRegistrations } from "#projection/erase.ts"
import { parseErasure, subjects } from "#streams/subjects.ts"
import type { UserToken } from "#streams/tokens.ts"
import { failed } from "../terminal/output.ts"
import { demandLog, reachedInTime } from "./log.ts"

/** Between two looks whether erasures are done. */
const lookMillis = 500
/** How long a command waits for the next one that is done. */
const erasedMillisMax = 60_000
const progressMillis = 10_000
const endedAtOnce = 16

type Asked = ReadonlyMap<UserToken, number>

/**
 * Has users erased, and waits until LOG has the facts that they are. Returns these. `before`: whose
 * erasure an earlier command asked for, with the sequence of that.
 */
export const eraseAll = Effect.fnUntraced(function* (
  users: ReadonlyArray<UserToken>,
  before: Asked = new Map()
) {
  yield* demandLog
  const some = users.filter((user) => !before.has(user))
  // First: a registration that the user begins after the command then stays.
  const ends = yield* Effect.forEach(
    some,
    (user) => endRegistrations(user, Number.POSITIVE_INFINITY),
    { concurrency: endedAtOnce }
  )
  // Where no projection runs now, the commands are stored all the same.
  if (ends.some((seq) => seq > 0)) yield* Effect.ignore(reachedInTime(Math.max(...ends)))
  const asked = yield* Effect.forEach(some, (user) =>
    Effect.map(askErasure(user), (seq) => [user, seq] as const)
  )
  yield* reachedInTime(asked.at(-1)?.[1] ?? 0)
  return yield* untilErased(new Map([...before, ...asked]))
})

/** Appends the command that erases a user, and returns its sequence. */
export const askErasure = Effect.fnUntraced(function* (user: UserToken) {
  const body = { at: yield* Clock.currentTimeMillis, by: "operator" }
  const command = { subject: subjects.erase(user), type: "user.erase", body } as const
  return (yield* (yield* EventLog).append("log", command)).seq
})

/** Waits until LOG has the facts that users are erased, as long as there are more of them. */
const untilErased = Effect.fnUntraced(function* (asked: Asked) {
  const log = yield* EventLog
  const wanted = [...asked.keys()].map(subjects.erased)
  let count = 0
  let idleMillis = 0
  for (let waited = 0; ; waited += lookMillis) {
    const last = yield* log.lastOf("log", wanted)
    const facts = last.filter(({ seq, subject }) => seq > asked.get(parseErasure(subject)!)!)
    if (facts.length === asked.size) return facts
    idleMillis = facts.length > count ? 0 : idleMillis + lookMillis
    count = facts.length
    const progress = `${count} of ${asked.size} users are erased`
    if (idleMillis >= erasedMillisMax)
      return yield* failed(
        `${progress}; nothing is sent to the others any more, but LOG may still have messages of ` +
          "theirs: the log of the service says why. It goes on while a projection runs"
      )
    if (waited > 0 && waited % progressMillis === 0) yield* Console.error(progress)
    yield* Effect.sleep(lookMillis)
  }
})
