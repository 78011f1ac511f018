// `bellcast channel list|show`: which channels somebody is registered to, whom grants name for one,
// and what was sent to it last.
import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import { matchesWildcard } from "#basics/wildcard.ts"
import { listBroadcasts } from "#broadcasts/list.ts"
import { emptyPushes, pushesSince } from "#domain/outcome.ts"
import { noPublishers } from "#domain/publisher.ts"
import { emptyChannel } from "#domain/registration.ts"
import { rowOf } from "#gateway/broadcasts/content.ts"
import { channelCounts } from "#gateway/channels/channel.ts"
import { folded } from "#gateway/channels/names.ts"
import {
  erasedSince,
  grantsAt,
  ifRoom,
  type Member,
  type Moment,
  membersAt
} from "#history/past.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { scanEntries } from "#nats/kv/entries.ts"
import { channelOfKey, keys } from "#streams/buckets.ts"
import {
  type ChannelToken,
  channelBytesMax,
  channelToken,
  decodeToken,
  isChannelToken
} from "#streams/tokens.ts"
import { printable, printableJson } from "#telemetry/redaction.ts"
import { shownBroadcasts } from "./broadcast.ts"
import { frugally } from "./nats/frugal.ts"
import { natsFlags, onNats, showOneAt } from "./nats/on-nats.ts"
import { argument, jsonFlag, limitFlag, named } from "./terminal/input.ts"
import { counted, failed, printMore, printRows, shellWord, tableOr } from "./terminal/output.ts"

/** All channels, the largest first. Reads the whole bucket. */
const channels = Effect.gen(function* () {
  const counts = new Map<ChannelToken, { registered: typeof emptyChannel; pushed: Pushed }>()
  type Pushed = ReturnType<typeof emptyPushes>
  yield* scanEntries("channels", (key, value) => {
    const place = channelOfKey(key)
    if (place === undefined) return
    const known = counts.get(place.channel) ?? { registered: emptyChannel, pushed: emptyPushes(0) }
    if (place.of === "registrations" && "registrations" in value) known.registered = value
    if (place.of === "pushes" && "pushes" in value) known.pushed = value
    counts.set(place.channel, known)
  })
  return [...counts]
    .map(([token, { pushed, registered }]) => ({
      id: decodeToken(token) ?? token,
      registrations: registered.registrations,
      push: pushesSince(pushed, registered.since).pushes
    }))
    .filter(({ registrations }) => registrations > 0)
    .sort((a, b) => b.registrations - a.registrations || (a.id < b.id ? -1 : 1))
})

const shownChannels = {
  heading: ["CHANNEL", "REGISTRATIONS", "PUSHES"],
  cellsOf: ({ id, push, registrations }: Effect.Success<typeof channels>[number]) => [
    ...[id, registrations, push]
  ],
  none: "no channels"
}

const channelList = Command.make(
  "list",
  {
    name: named("name", "PATTERN").pipe(
      Flag.withDescription("Only these, by a pattern in which * stands for any text"),
      Flag.withDefault("*")
    ),
    prefix: named("prefix", "TEXT").pipe(
      Flag.withDescription("Only those that begin with this, in any case"),
      Flag.withDefault("")
    ),
    limit: limitFlag,
    json: jsonFlag,
    ...natsFlags
  },
  ({ json, limit, name, prefix, ...nats }) =>
    Effect.gen(function* () {
      const begins = folded(prefix)
      const found = (yield* channels).filter(
        ({ id }) => matchesWildcard(name, id) && folded(id).startsWith(begins)
      )
      yield* printRows(json, found.slice(0, limit), shownChannels)
      if (found.length > limit) yield* printMore(json, limit)
    }).pipe(onNats(nats))
).pipe(
  Command.withDescription("List the channels that somebody is registered to, the largest first"),
  Command.withExamples([
    { command: "bellcast channel list --name 'news*'", description: "Those that begin with news" }
  ])
)

/** The newest broadcasts that are shown. */
const broadcastsMax = 5

const channelOf = Effect.fnUntraced(function* (id: string) {
  const channel = channelToken(id)
  return isChannelToken(channel)
    ? channel
    : yield* failed(`a channel has 1 to ${channelBytesMax} bytes and no slash`)
})

/** The newest broadcasts: those before a moment, in its history; without one, of now. */
const lastBroadcasts = Effect.fnUntraced(function* (channel: ChannelToken, moment?: Moment) {
  const { next, rows } = yield* listBroadcasts({
    channel,
    withNamed: true,
    limit: broadcastsMax,
    ...{ behind: undefined, since: moment?.historyFrom, before: moment?.at },
    ...{ publisher: undefined, state: undefined },
    isShown: () => Effect.succeed(true)
  })
  const broadcasts = yield* Effect.forEach(rows, (row) => rowOf(row))
  return { broadcasts, ...(next !== undefined && { more_broadcasts: true }) }
})

const show = Effect.fnUntraced(function* (id: string) {
  const channel = yield* channelOf(id)
  const { push, registrations } = yield* channelCounts(channel)
  const grants = yield* (yield* Buckets).get("permissions", keys.publishers(channel))
  const { principals, registrars } = grants?.value ?? noPublishers
  const last = yield* lastBroadcasts(channel)
  return { id, registrations, push, publishers: principals, registrars, ...last }
})

type Channel = Effect.Success<ReturnType<typeof show>>

/** A channel as it is, or as it was `at` a time, when LOG did not count its pushes. */
type ShownChannel = Omit<Channel, "push"> & {
  readonly push?: number
  readonly at?: number
  /** Users of the service, of this channel or not, who were erased after `at`. */
  readonly erased_since?: number
}

const textOf = (channel: ShownChannel): string => {
  const { at, broadcasts, id, publishers, push, registrars, registrations } = channel
  return [
    `channel        ${printable(id)}`,
    ...(at === undefined ? [] : [`at             ${new Date(at).toISOString()}`]),
    `registrations  ${registrations}${withoutErased(channel)}`,
    ...(push === undefined ? [] : [`pushes         ${push}`]),
    `may publish    ${namesOf(publishers) || "nobody"}, beside those whom the settings name`,
    `may register   ${mayRegister(registrars)}`,
    "",
    ...(at === undefined ? [] : ["broadcasts before then, with what became of them since:"]),
    tableOr(broadcasts, shownBroadcasts),
    ...(channel.more_broadcasts ? [olderOf(channel)] : [])
  ].join("\n")
}

const namesOf = (who: ReadonlyArray<string>): string => who.map(printable).join(", ")

/** A grant to register counts only where the settings close the channel, which LOG does not say. */
const mayRegister = (registrars: ReadonlyArray<string>): string =>
  registrars.length === 0
    ? "everybody, unless the settings close it"
    : `everybody; where the settings close it, ${namesOf(registrars)}`

const olderOf = ({ at, broadcasts, id }: ShownChannel): string => {
  const before = at === undefined ? "" : ` --before ${new Date(at).toISOString()}`
  const verb = `bellcast broadcast list --channel ${shellWord(id)}${before}`
  return `${broadcasts.length} or more: ${verb} shows others`
}

/** LOG does not say any more whether somebody who was erased was on the channel. */
const withoutErased = ({ erased_since: erased = 0 }: ShownChannel): string => {
  if (erased === 0) return ""
  return `; LOG no longer says it of ${counted(erased, "user")} of the service erased since`
}

/** Members are printed in parts, each of which waits for the terminal. */
const printMembers = (members: Effect.Success<ReturnType<typeof membersAt>>, json: boolean) =>
  Effect.forEach(
    members.parts(),
    (part) =>
      part.length === 0
        ? Effect.void
        : Console.log(part.map(json ? printableJson : memberLine).join("\n")),
    { discard: true }
  )

const memberLine = ({ id = "", since, user }: Member): string =>
  `${new Date(since).toISOString()}  ${user}  ${printable(id)}`

/** Prints a channel as LOG had it, and after it a line for each member. */
const printPast = Effect.fnUntraced(
  function* (id: string, moment: Moment, json: boolean) {
    const channel = yield* channelOf(id)
    const { principals, registrars } =
      (yield* grantsAt(channel, moment)).get(channel) ?? noPublishers
    const last = yield* lastBroadcasts(channel, moment)
    const members = yield* membersAt(channel, moment)
    const { at } = moment
    const found = {
      ...{ id, at, registrations: members.count, erased_since: yield* erasedSince(moment) },
      ...{ publishers: principals, registrars, ...last }
    }
    yield* Console.log(json ? printableJson(found) : textOf(found))
    if (!json && members.count > 0)
      yield* Console.log("\nREGISTERED SINCE          PSEUDONYM               USER")
    yield* printMembers(members, json)
  },
  Effect.scoped,
  ifRoom,
  frugally
)

const channelShow = showOneAt({
  named: argument("channel", "The channel's id"),
  read: show,
  textOf,
  printPast,
  description:
    "Show a channel: its counts, its grants and its last broadcasts; with --at also its members",
  example: { command: "bellcast channel show news", description: "Show the channel news" },
  exampleOfPast: {
    command: "bellcast channel show news --at 2026-05-04T12:00Z --json",
    description: "The channel at that time and its members, a line of JSON each"
  }
})

/** The verb. */
export const channelCommand = Command.make("channel").pipe(
  Command.withDescription("List and show channels"),
  Command.withSubcommands([channelList, channelShow])
)
