// `bellcast broadcast list`: what was published, to whom, and what became of it.
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { listBroadcasts, readOn, readsOfCommandMax } from "#broadcasts/list.ts"
import { BroadcastState } from "#domain/broadcast-state.ts"
import { millisOf } from "#domain/timestamp.ts"
import { type BroadcastObject, viewOf } from "#gateway/broadcasts/view.ts"
import { channelToken } from "#streams/tokens.ts"
import { natsFlags, onNats } from "../nats/nats.ts"
import { jsonFlag, limitFlag, named, optional } from "../terminal/flags.ts"
import { printRows } from "../terminal/table.ts"
import { timeFlag } from "../terminal/times.ts"

type View = typeof BroadcastObject.Type

/** When it starts or started: `at` is what its publisher wrote. */
export const startOf = ({ accepted_at, at, started_at }: View): string =>
  new Date(started_at ?? millisOf(at ?? "") ?? accepted_at).toISOString()

/** To whom a broadcast goes, for people. */
export const recipientsOf = ({ to: { channels, except_users, users } }: View): string =>
  [
    ...channels,
    ...(users === 0 ? [] : [`${users} users`]),
    ...(except_users === 0 ? [] : [`except ${except_users}`])
  ].join(", ")

/** The publisher is last: an id has up to 80 characters. */
export const shownBroadcasts = {
  heading: [
    ...["BROADCAST", "STATE", "STARTS", "PEOPLE", "PUSHES", "DELIVERED", "WAITING"],
    ...["TO", "PUBLISHER"]
  ],
  cellsOf: (view: View) => [
    ...[Number(view.id), view.state, startOf(view), view.people, view.accepted, view.delivered],
    ...[view.waiting + view.retrying, recipientsOf(view), view.publisher]
  ],
  none: "no broadcasts"
}

const filterFlags = {
  channel: optional(
    named("channel", "CHANNEL"),
    "Only those on this channel, without those that name it in `to`"
  ),
  publisher: optional(named("publisher", "PRINCIPAL"), "Only those of this publisher"),
  state: optional(Flag.Literals("state", BroadcastState.literals), "Only those in this state"),
  since: timeFlag("since", "Only those accepted or started at this time or later").pipe(
    Flag.optional
  ),
  before: timeFlag("before", "Only those accepted or started before this time").pipe(Flag.optional),
  limit: limitFlag
}

interface Filters {
  readonly channel: Option.Option<string>
  readonly publisher: Option.Option<string>
  readonly state: Option.Option<BroadcastState>
  readonly since: Option.Option<Date>
  readonly before: Option.Option<Date>
  readonly limit: number
}

const list = Effect.fnUntraced(function* (filters: Filters) {
  const rows = yield* readOn(filters.limit, (behind: number | undefined, limit) =>
    listBroadcasts({
      channel: Option.getOrUndefined(Option.map(filters.channel, channelToken)),
      limit,
      behind,
      changeReadsMax: readsOfCommandMax,
      since: Option.getOrUndefined(filters.since)?.getTime(),
      before: Option.getOrUndefined(filters.before)?.getTime(),
      publisher: Option.getOrUndefined(filters.publisher),
      state: Option.getOrUndefined(filters.state),
      isShown: () => Effect.succeed(true)
    })
  )
  return yield* Effect.forEach(rows, ({ origin, standing }) => viewOf(origin, standing))
})

/** The verb. */
export const broadcastList = Command.make(
  "list",
  { ...filterFlags, json: jsonFlag, ...natsFlags },
  ({ before, channel, json, limit, publisher, since, state, ...nats }) =>
    list({ before, channel, limit, publisher, since, state }).pipe(
      Effect.flatMap((views) => printRows(json, views, shownBroadcasts)),
      onNats(nats)
    )
).pipe(
  Command.withDescription("List broadcasts, the newest first"),
  Command.withExamples([
    { command: "bellcast broadcast list --since 2026-11-23", description: "Since that day" }
  ])
)
