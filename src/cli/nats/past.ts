// The flag `--at` of verbs that say what was true at an earlier moment, and what they print of it.
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import { type Moment, momentAt, NotInHistory } from "#history/past.ts"
import { ownSettings, timeFlag } from "../terminal/input.ts"
import { failedBy } from "../terminal/output.ts"
import { demandLog } from "./log.ts"

/** A time of which LOG is asked instead of the buckets. */
export const atFlag = timeFlag("at", "What was true at this time, within the history").pipe(
  Flag.optional
)

/** Fails with VerbFailed where LOG does not say what was true then. */
export const momentGiven = Effect.fnUntraced(function* (at: Date) {
  yield* demandLog
  const { historyDays } = yield* ownSettings("historyDays")
  return yield* momentAt(at.getTime(), historyDays).pipe(inHistory)
})

/** A failure of what reads the past as one line. */
export const inHistory = <A, E, R>(past: Effect.Effect<A, E | NotInHistory, R>) =>
  Effect.catchIf(
    past,
    (error): error is NotInHistory => error instanceof NotInHistory,
    (fault) => Effect.fail(failedBy(fault))
  )

/** Runs `past` with the moment of `--at`, or `present` without the flag. */
export const presentOr = <A, E, R, B, F, S>(
  at: Option.Option<Date>,
  present: Effect.Effect<A, E, R>,
  past: (moment: Moment) => Effect.Effect<B, F, S>
) =>
  Effect.gen(function* () {
    if (at._tag === "None") return yield* present
    return yield* past(yield* momentGiven(at.value)).pipe(inHistory)
  })
