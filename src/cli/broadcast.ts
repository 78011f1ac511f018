// `bellcast broadcast list|show|watch|pause|resume|cancel`: what an operator sees of broadcasts,
// and does with them. A change of a state is obeyed a second later.
import * as Console from "effect/Console"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { listBroadcasts, readSome, readsOfCommandMax } from "#broadcasts/list.ts"
import { changeState, standingOf } from "#broadcasts/state.ts"
import { BroadcastWatch, followBroadcast } from "#broadcasts/watch.ts"
import { BroadcastState, type WantedState } from "#domain/broadcast-state.ts"
import { millisOf } from "#domain/timestamp.ts"
import { contentOf, cut, rowOf } from "#gateway/broadcasts/content.ts"
import { type BroadcastObject, detailedViewOf, type Shown } from "#gateway/broadcasts/view.ts"
import { readServerTime } from "#nats/watch/server-time.ts"
import { channelToken } from "#streams/tokens.ts"
import { printable, printableJson } from "#telemetry/redaction.ts"
import { broadcastArgument, demandBroadcast } from "./nats/broadcasts.ts"
import { natsFlags, onNats, showOne } from "./nats/on-nats.ts"
import { jsonFlag, limitFlag, named, objectFlag, optional, timeFlag } from "./terminal/input.ts"
import { counted, failed, nextBefore, printMore, printRows, table } from "./terminal/output.ts"

type View = typeof BroadcastObject.Type

const filterFlags = {
  channel: optional(
    named("channel", "CHANNEL"),
    "Only those to this channel, with those to several that name it"
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
  const { isMore, rows } = yield* readSome(filters.limit, (behind: number | undefined, limit) =>
    listBroadcasts({
      channel: Option.getOrUndefined(Option.map(filters.channel, channelToken)),
      withNamed: true,
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
  return { isMore, views: yield* Effect.forEach(rows, (row) => rowOf(row)) }
})

/** Characters of a title and of a name in a table. */
const cellCharsMax = 40

/** The publisher is last: an id has up to 80 characters. */
export const shownBroadcasts = {
  heading: [
    ...["BROADCAST", "STATE", "STARTS", "PEOPLE", "PUSHES", "DELIVERED", "WAITING"],
    ...["TITLE", "NAME", "TO", "PUBLISHER"]
  ],
  cellsOf: (view: View) => [
    ...[Number(view.id), view.state, startOf(view), view.people, view.accepted, view.delivered],
    ...[view.waiting + view.retrying, shortened(view.title), shortened(view.name)],
    ...[recipientsOf(view), view.publisher]
  ],
  none: "no broadcasts"
}

const shortened = (text: string | undefined) => text && cut(text, cellCharsMax)

/** When it starts or started: `at` is what its publisher wrote. */
const startOf = ({ accepted_at, at, started_at }: View): string =>
  new Date(started_at ?? millisOf(at ?? "") ?? accepted_at).toISOString()

/** To whom a broadcast goes, for people. */
const recipientsOf = ({ test, to: { channels, except_users, users } }: View): string =>
  [
    ...(test === true ? ["test"] : []),
    ...channels,
    ...(users === 0 ? [] : [counted(users, "user")]),
    ...(except_users === 0 ? [] : [`except ${except_users}`])
  ].join(", ")

const broadcastList = Command.make(
  "list",
  { ...filterFlags, json: jsonFlag, ...natsFlags },
  ({ before, channel, json, limit, publisher, since, state, ...nats }) =>
    Effect.gen(function* () {
      const { isMore, views } = yield* list({ before, channel, limit, publisher, since, state })
      yield* printRows(json, views, shownBroadcasts)
      const last = views.at(-1)?.accepted_at ?? 0
      const next = nextBefore(last, Option.match(since, { onNone: () => 0, onSome: Number }))
      if (isMore) yield* printMore(json, views.length, next)
    }).pipe(onNats(nats))
).pipe(
  Command.withDescription("List broadcasts, the newest first"),
  Command.withExamples([
    { command: "bellcast broadcast list --since 2026-11-23", description: "Since that day" }
  ])
)

const show = Effect.fnUntraced(function* (broadcast: number) {
  const origin = yield* demandBroadcast(broadcast)
  const standing = yield* standingOf(origin)
  const details = yield* detailedViewOf(origin, standing)
  return { ...details, ...(yield* contentOf(origin, standing)) }
})

const broadcastText = (view: Detailed): string => {
  const {
    done_share: _,
    locales: __,
    push_services: ___,
    reasons: ____,
    retries: _____,
    ...rest
  } = view
  const lines = Object.entries({ ...rest, ...doneOf(view), to: recipientsOf(view) }).map(
    ([name, value]) => `${name.padEnd(22)}${printable(cellOf(name, value))}`
  )
  return [lines.join("\n"), ...tablesOf(view)].join("\n\n")
}

const cellOf = (name: string, value: unknown): string => {
  if (name.startsWith("data")) return JSON.stringify(value)
  if (typeof value === "object")
    return Object.entries(value ?? {})
      .map((entry) => entry.join("="))
      .join(", ")
  return /_at$|^last_modified$/.test(name) ? new Date(Number(value)).toISOString() : String(value)
}

/** How much of it is done: `practically done` once each push was tried, or ended before. */
const doneOf = ({ done_share, retries, shards, shards_done, waiting }: Detailed) => {
  if (done_share === undefined) return {}
  const again = retries.reduce((sum, { pushes }) => sum + pushes, 0)
  const until = new Date(Math.max(...retries.map((each) => each.until)))
  const tried = again === 0 ? "" : `, ${again} are tried again until ${until.toISOString()}`
  const isTried = again > 0 && waiting === 0 && shards_done === shards
  return { [isTried ? "practically done" : "done"]: `${Math.floor(100 * done_share)} %${tried}` }
}

const fates = ["delivered", "retrying", "expired", "dead", "gone", "cancelled"] as const

type Detailed = (typeof Shown.Type)["data"]

/** Tables of the pushes by reason, push service and language; none of what has no pushes. */
const tablesOf = ({ locales = {}, push_services, reasons, retries }: Detailed) => {
  const again = retries.map(({ pushes, reason, until }) => [
    ...[reason, pushes, new Date(until).toISOString()]
  ])
  const services = Object.entries(push_services).map(([name, of]) => [
    ...[name, ...fates.map((fate) => of[fate])],
    ...[of.p50_millis, of.p99_millis]
  ])
  const languages = Object.entries(locales).map(([locale, of]) => [
    ...[locale, ...fates.map((fate) => of[fate])]
  ])
  const names = fates.map((fate) => fate.toUpperCase())
  const tables: ReadonlyArray<Parameters<typeof table>> = [
    [["REASON", "PUSHES"], Object.entries(reasons)],
    [["TRIED AGAIN FOR", "PUSHES", "UNTIL"], again],
    [["PUSH SERVICE", ...names, "P50 MS", "P99 MS"], services],
    [["LOCALE", ...names], languages]
  ]
  return tables.filter(([, rows]) => rows.length > 0).map((each) => table(...each))
}

const broadcastShow = showOne({
  named: broadcastArgument.pipe(Argument.withDescription("The broadcast to show")),
  read: show,
  textOf: broadcastText,
  description: "Show a broadcast: its state, who published it, and what became of it",
  example: { command: "bellcast broadcast show 5", description: "Show the broadcast with the id 5" }
})

const watch = Effect.fnUntraced(function* (broadcast: number, json: boolean) {
  const origin = yield* demandBroadcast(broadcast)
  const { rejected, state } = yield* followBroadcast(
    origin,
    yield* standingOf(origin),
    (standing) =>
      Effect.flatMap(detailedViewOf(origin, standing), (view) =>
        Console.log(json ? printableJson(view) : lineOf(view))
      )
  )
  if (state === "cancelled") return yield* failed(`broadcast ${broadcast} was cancelled`)
  if (rejected !== undefined)
    return yield* failed(`broadcast ${broadcast} was rejected: ${printable(rejected)}`)
})

const counts = ["delivered", "waiting", "retrying", "expired", "dead", "gone", "cancelled"] as const

/** The counts that are 0 are left out. */
const lineOf = (view: typeof BroadcastObject.Type): string => {
  const { accepted, last_modified, people, state } = view
  const parts = [
    ...(state === "scheduled" ? [`starts ${startOf(view)}`] : []),
    ...(people === undefined ? [] : [counted(people, "person", "people")]),
    `${accepted} accepted`,
    ...counts.filter((name) => view[name] > 0).map((name) => `${view[name]} ${name}`)
  ]
  return `${new Date(last_modified).toISOString()}  ${state.padEnd(9)}  ${parts.join(", ")}`
}

const watchCommand = Command.make(
  "watch",
  {
    broadcast: broadcastArgument.pipe(Argument.withDescription("The broadcast to watch")),
    json: jsonFlag,
    ...natsFlags
  },
  ({ broadcast, json, ...nats }) =>
    onNats(nats)(Effect.provide(watch(broadcast, json), BroadcastWatch.layer))
).pipe(
  Command.withDescription("Print what becomes of a broadcast, until it is finished"),
  Command.withExamples([
    { command: "bellcast broadcast watch 5", description: "Watch the broadcast with the id 5" }
  ])
)

const change = Effect.fnUntraced(function* (broadcast: number, verb: string, wanted: WantedState) {
  const origin = yield* demandBroadcast(broadcast)
  const at = (yield* readServerTime).serverMillis
  const { isChanged, state } = yield* changeState(origin, wanted, "operator", at)
  return isChanged || state === wanted
    ? state
    : yield* failed(`broadcast ${broadcast} is ${state}: there is nothing to ${verb}`)
})

const changeFlags = {
  broadcast: broadcastArgument.pipe(Argument.withDescription("The id of the broadcast")),
  json: objectFlag,
  ...natsFlags
}

/** A verb that changes the state of a broadcast. */
const changing = (verb: string, wanted: WantedState, description: string) =>
  Command.make(verb, changeFlags, ({ broadcast, json, ...nats }) =>
    change(broadcast, verb, wanted).pipe(
      Effect.flatMap((state) =>
        Console.log(
          json ? JSON.stringify({ broadcast, state }) : `broadcast ${broadcast} is ${state}`
        )
      ),
      onNats(nats)
    )
  ).pipe(
    Command.withDescription(description),
    Command.withExamples([
      { command: `bellcast broadcast ${verb} 5`, description: "For the broadcast with the id 5" }
    ])
  )

const changeCommands = [
  changing("pause", "paused", "Hold a broadcast: within a second no push of it begins"),
  changing("resume", "running", "Go on with a paused broadcast"),
  changing("cancel", "cancelled", "Stop a broadcast for ever: what is not sent yet never is")
] as const

/** The verb. */
export const broadcastCommand = Command.make("broadcast").pipe(
  Command.withDescription("List, show, watch, pause, resume and stop broadcasts"),
  Command.withSubcommands([broadcastList, broadcastShow, watchCommand, ...changeCommands])
)
