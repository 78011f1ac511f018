// `bellcast audit --user USER --at TIME`: which broadcasts up to a time this user should have got,
// on which devices, and why or why not. LOG says it for the whole history; what became of a push is
// in WORK, for some weeks.
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { ForUser } from "#broadcasts/pushes.ts"
import { demandInHistory, type Moment } from "#history/past.ts"
import { makeReason, type Reason } from "#history/recipient.ts"
import { streams } from "#streams/index.ts"
import { type Filters, ofBroadcast, selected } from "./audit-user.ts"
import { printToUser } from "./nats/erased.ts"
import { userGiven } from "./nats/users.ts"
import { isoOf, printMore } from "./terminal/output.ts"

/**
 * Prints the broadcasts before a moment that could go to a user, of the weeks before it unless the
 * filters say since when. Fails with NotInHistory where that is before the history.
 */
export const auditUserAt = Effect.fnUntraced(function* (
  given: string,
  moment: Moment,
  filters: Omit<Filters, "before">,
  json: boolean
) {
  const { user } = yield* userGiven(given)
  const { at, historyFrom } = moment
  const since = Option.match(filters.since, {
    onNone: () => Math.max(at - streams.work.maxAgeMillis, historyFrom),
    onSome: Number
  })
  yield* demandInHistory(since, historyFrom)
  const span = { since: Option.some(new Date(since)), before: Option.some(new Date(at)) }
  const { isMore, rows: found } = yield* selected(user, { ...filters, ...span }, at)
  const reason = yield* makeReason(user, moment.seq)
  const rows = yield* Effect.forEach(found, (each) =>
    Effect.map(reason(each), (why) => ({ ...ofBroadcast(each), ...why, ...outcomesOf(each) }))
  )
  yield* printToUser(json, rows, shown, { since, user })
  if (isMore) yield* printMore(json, found.length)
})

/** The fates of the pushes, as far as WORK has them. */
const outcomesOf = ({ pushes }: ForUser) =>
  pushes.length === 0 ? {} : { outcomes: pushes.map(({ fate }) => fate) }

const shown = {
  heading: ["BROADCAST", "STARTED", "CHANNEL", "STATE", "SHOULD GET IT", "DEVICES", "WHY"],
  cellsOf: (
    row: ReturnType<typeof ofBroadcast> & Reason & { readonly outcomes?: ReadonlyArray<string> }
  ) => [
    ...[row.broadcast, isoOf(row.started_at), row.channel, row.state],
    ...[row.should === undefined ? undefined : row.should ? "yes" : "no"],
    ...[row.devices?.length, row.why]
  ],
  none: "no broadcasts to this user in that time"
}
