// `bellcast permissions list|grant|revoke`: sets who may publish on one channel. Those whom the
// settings name may publish on all channels.
import * as Clock from "effect/Clock"
import * as Console from "effect/Console"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import {
  foldPublishers,
  nobodyFault,
  noPublishers,
  type PublisherCommand,
  type Publishers
} from "#domain/publisher.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { keys } from "#streams/buckets.ts"
import { filters, parsePublisher, subjects } from "#streams/subjects.ts"
import {
  type ChannelToken,
  channelBytesMax,
  channelToken,
  decodeToken,
  isChannelToken
} from "#streams/tokens.ts"
import { printable } from "#telemetry/printable.ts"
import { untilApplied } from "./nats/applied.ts"
import { natsFlags, onNats } from "./nats/nats.ts"
import { demandLog, demandRoom } from "./nats/room.ts"
import { failed } from "./terminal/failed.ts"
import { jsonFlag } from "./terminal/flags.ts"
import { printRows } from "./terminal/table.ts"
import { policyFault, storedPrincipal } from "./users/principal.ts"

const isCommand = (message: { readonly type: string }): message is PublisherCommand =>
  message.type.startsWith("publisher.")

/**
 * The publishers of each channel that a filter matches, from LOG. `seq` is that of the last
 * message, applied or rejected. `scan` needs the rights of an auditor only, but may read a replica
 * that is behind.
 */
const publishersOf = Effect.fnUntraced(function* (filter: string, by: "scan" | "replay") {
  const log = yield* EventLog
  yield* demandLog
  const channels = new Map<ChannelToken, Publishers>()
  yield* log[by]("log", [filter], ({ message, seq, subject }) => {
    const channel = parsePublisher(subject)
    if (channel === undefined) return
    const before = channels.get(channel) ?? noPublishers
    channels.set(
      channel,
      isCommand(message) ? foldPublishers(before, message, seq).publishers : { ...before, seq }
    )
  })
  return channels
})

/** Why a grant is none. `*` is a pattern in settings and tokens, so it is no name here. */
const grantFault = Effect.fnUntraced(function* (channel: string, principal: string) {
  if (channel.includes("*"))
    return (
      `${channel} is a pattern, and a grant is for one channel; for all that match set ` +
      `BELLCAST_CHANNEL_WRITE_PRINCIPALS="${channel}=${principal}"`
    )
  return nobodyFault(principal) ?? (yield* policyFault)(principal)
})

/**
 * Adds or removes a publisher. Fails if another operator writes at the same time. Returns whether
 * anything changed.
 */
const setPublisher = Effect.fnUntraced(function* (channel: string, principal: string, on: boolean) {
  const token = channelToken(channel)
  if (!isChannelToken(token))
    return yield* failed(`a channel has 1 to ${channelBytesMax} bytes and no slash`)
  const fault = on ? yield* grantFault(channel, principal) : undefined
  if (fault !== undefined) return yield* failed(fault)
  const subject = subjects.publisher(token)
  const publishers = (yield* publishersOf(subject, "replay")).get(token) ?? noPublishers
  if (publishers.principals.includes(principal) === on) return false
  const type = on ? "publisher.put/1" : "publisher.delete/1"
  const body = { principal, at: yield* Clock.currentTimeMillis }
  if (on) yield* demandRoom("permissions")
  const { reason } = foldPublishers(publishers, { type, ...body }, publishers.seq + 1)
  if (reason !== undefined) return yield* failed(reason)
  const { seq } = yield* (yield* EventLog).append("log", {
    subject,
    type,
    body,
    expect: publishers.seq
  })
  yield* untilApplied(keys.publishers(token), seq)
  return true
})

const listed = Effect.fnUntraced(function* (channel: Option.Option<string>) {
  const filter = Option.match(channel, {
    onNone: () => filters.publishers,
    onSome: (name) => subjects.publisher(channelToken(name))
  })
  return [...(yield* publishersOf(filter, "scan"))]
    .flatMap(([token, { principals }]) =>
      principals.map((principal) => ({ channel: decodeToken(token) ?? token, principal }))
    )
    .sort((a, b) =>
      a.channel === b.channel
        ? a.principal < b.principal
          ? -1
          : 1
        : a.channel < b.channel
          ? -1
          : 1
    )
})

const channel = Argument.String("channel").pipe(Argument.withDescription("The channel's id"))
const principal = Argument.String("principal").pipe(
  Argument.withDescription(
    "<policy>:<id> as GET /v1/ shows it to its user, or <policy>:<mail address>"
  )
)

const changing = (verb: "grant" | "revoke", on: boolean, description: string) =>
  Command.make(
    verb,
    { channel, principal, ...natsFlags },
    ({ channel, principal: named, ...nats }) =>
      Effect.gen(function* () {
        const principal = yield* storedPrincipal(named)
        const changed = yield* setPublisher(channel, principal, on)
        const done = on
          ? `may publish on ${channel}`
          : `is ${changed ? "no longer" : "not"} named for ${channel}`
        // The settings are those of the service and may stand elsewhere.
        const more = changed
          ? on
            ? ""
            : "; whom the settings name may still publish"
          : ": nothing to change"
        yield* Console.log(printable(`${principal} ${done}${more}`))
      }).pipe(onNats(nats))
  ).pipe(Command.withDescription(description))

const list = Command.make(
  "list",
  {
    channel: channel.pipe(Argument.optional),
    json: jsonFlag,
    ...natsFlags
  },
  ({ channel, json, ...nats }) =>
    Effect.gen(function* () {
      yield* printRows(json, yield* listed(channel), {
        heading: ["CHANNEL", "PRINCIPAL"],
        cellsOf: ({ channel, principal }) => [channel, principal],
        none: "no publisher is named for a channel"
      })
    }).pipe(onNats(nats))
).pipe(Command.withDescription("List the publishers named for a channel, or for all"))

/** The verb. */
export const permissionsCommand = Command.make("permissions").pipe(
  Command.withDescription(
    "Name users who may publish on a channel, beside those whom the settings name for all"
  ),
  Command.withSubcommands([
    list,
    changing("grant", true, "Let a user publish on a channel"),
    changing("revoke", false, "Undo a grant; whom the settings name may still publish")
  ])
)
