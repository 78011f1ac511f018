// `bellcast broadcast list` and `show BROADCAST`: what was published, to whom, and what became of
// it.

import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { BroadcastState } from "#domain/broadcast-state.ts"
import {
  type BroadcastObject,
  detailedViewOf,
  type Shown,
  viewOf
} from "#gateway/broadcasts/view.ts"
import { listBroadcasts } from "#nats/broadcasts/list.ts"
import { readOn } from "#nats/broadcasts/read-on.ts"
import { readsOfCommandMax } from "#nats/broadcasts/started-in.ts"
import { standingOf } from "#nats/broadcasts/state.ts"
import { channelToken } from "#streams/tokens.ts"
import { printable } from "#telemetry/printable.ts"
import { broadcastArgument, demandBroadcast } from "../nats/broadcast.ts"
import { natsFlags, onNats } from "../nats/nats.ts"
import { showOne } from "../nats/show-one.ts"
import { jsonFlag, limitFlag, optional, timeFlag } from "../terminal/flags.ts"
import { printRows, table } from "../terminal/table.ts"

type View = typeof BroadcastObject.Type

const iso = (millis: number): string => new Date(millis).toISOString()

const recipientsOf = ({ to: { channels, except_users, users } }: View): string =>
  [
    ...channels,
    ...(users === 0 ? [] : [`${users} users`]),
    ...(except_users === 0 ? [] : [`except ${except_users}`])
  ].join(", ")

/** The publisher is last: an id has up to 80 characters. */
export const shownBroadcasts = {
  heading: ["BROADCAST", "STATE", "AT", "ACCEPTED", "DELIVERED", "WAITING", "TO", "PUBLISHER"],
  cellsOf: (view: View) => [
    ...[Number(view.id), view.state, iso(view.accepted_at), view.accepted, view.delivered],
    ...[view.waiting + view.retrying, recipientsOf(view), view.publisher]
  ],
  none: "no broadcasts"
}

const filterFlags = {
  channel: optional(
    Flag.String("channel"),
    "Only those on this channel, without those that name it in `to`"
  ),
  publisher: optional(Flag.String("publisher"), "Only those of this publisher"),
  state: optional(Flag.Literals("state", BroadcastState.literals), "Only those in this state"),
  since: timeFlag("since", "Only those accepted or started at this time or later"),
  before: timeFlag("before", "Only those accepted or started before this time"),
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
export const listCommand = Command.make(
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
    { command: "bellcast broadcast list --since 2026-11-23", description: "Since that day, UTC" }
  ])
)

const show = Effect.fnUntraced(function* (broadcast: number) {
  const origin = yield* demandBroadcast(broadcast)
  return yield* detailedViewOf(origin, yield* standingOf(origin))
})

const cellOf = (name: string, value: unknown): string => {
  if (typeof value === "object")
    return Object.entries(value ?? {})
      .map((entry) => entry.join("="))
      .join(", ")
  return /_at$|^last_modified$/.test(name) ? iso(Number(value)) : String(value)
}

const fates = ["delivered", "retrying", "expired", "dead", "gone", "cancelled"] as const

type Detailed = (typeof Shown.Type)["data"]

/** Tables of the pushes by reason and by push service; none of what has no pushes. */
const tablesOf = ({ push_services, reasons }: Detailed): ReadonlyArray<string> => {
  const services = Object.entries(push_services).map(([name, of]) => [
    ...[name, ...fates.map((fate) => of[fate])],
    ...[of.p50_millis, of.p99_millis]
  ])
  const heading = ["PUSH SERVICE", ...fates.map((fate) => fate.toUpperCase()), "P50 MS", "P99 MS"]
  return [
    ...(Object.keys(reasons).length > 0
      ? [table(["REASON", "PUSHES"], Object.entries(reasons))]
      : []),
    ...(services.length > 0 ? [table(heading, services)] : [])
  ]
}

const textOf = (view: Detailed): string => {
  const { push_services: _, reasons: __, ...rest } = view
  const lines = Object.entries({ ...rest, to: recipientsOf(view) }).map(
    ([name, value]) => `${name.padEnd(22)}${printable(cellOf(name, value))}`
  )
  return [lines.join("\n"), ...tablesOf(view)].join("\n\n")
}

/** The verb. */
export const showCommand = showOne({
  named: broadcastArgument.pipe(Argument.withDescription("The broadcast to show")),
  read: show,
  textOf,
  description: "Show a broadcast: its state, who published it, and what became of it",
  example: { command: "bellcast broadcast show 5", description: "Show the broadcast with the id 5" }
})
