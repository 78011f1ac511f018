// `bellcast permissions list|grant|revoke`: who may publish on a channel, beside those whom the settings name for all channels.
import { Console, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { noPublishers, type Publishers, principalFault, publishersMax, withPublisher } from "#domain/publisher.ts"
import { Buckets } from "#log/bucket.ts"
import { bucketState } from "#log/operate.ts"
import { keys } from "#streams/buckets.ts"
import { channelBytesMax, channelToken, decodeToken, isChannelToken } from "#streams/tokens.ts"
import { natsFlags, onNats, VerbFailed } from "./nats.ts"
import { table } from "./table.ts"

/** Why nobody can be this principal. */
const faultOf = (principal: string): string | undefined =>
  /^basicauth:(?![0-9a-f]{64}$)/.test(principal)
    ? "an id of basicauth has 64 digits, 0-9 and a-f, as GET /v1/ shows it to its user"
    : principalFault(principal)

/** Nothing is made here that the service would make otherwise. */
const provisioned = Effect.gen(function* () {
  if ((yield* bucketState("permissions")) === undefined)
    return yield* new VerbFailed({ message: "this NATS has no bucket for permissions: start the service once" })
})

/** Names or drops a publisher; another operator at the same time makes it fail, and nothing is lost. */
export const setPublisher = Effect.fnUntraced(function* (channel: string, principal: string, on: boolean) {
  yield* provisioned
  const token = channelToken(channel)
  if (!isChannelToken(token)) return yield* new VerbFailed({ message: `a channel has 1 to ${channelBytesMax} bytes and no slash` })
  const fault = on ? faultOf(principal) : undefined
  if (fault !== undefined) return yield* new VerbFailed({ message: fault })
  const buckets = yield* Buckets
  const key = keys.publishers(token)
  const entry = yield* buckets.get("permissions", key)
  const next = withPublisher((entry?.value as Publishers | undefined) ?? noPublishers, principal, on)
  if (next === undefined) return false
  if (next.principals.length > publishersMax)
    return yield* new VerbFailed({
      message: `a channel has at most ${publishersMax} publishers: let them share a principal, or use the settings`
    })
  yield* buckets.put("permissions", key, next, entry?.revision ?? 0)
  return true
})

const listed = Effect.fnUntraced(function* (channel: Option.Option<string>) {
  yield* provisioned
  const buckets = yield* Buckets
  const filter = Option.match(channel, { onNone: () => "*.publishers", onSome: (name) => keys.publishers(channelToken(name)) })
  const entries = yield* buckets.getMany("permissions", [filter], yield* buckets.revision("permissions"))
  if (entries === undefined) return yield* new VerbFailed({ message: "too many channels to list at once: name one" })
  return entries
    .flatMap(({ key, value }) => {
      const token = key.slice(0, key.lastIndexOf("."))
      return (value as Publishers).principals.map((principal) => ({ channel: decodeToken(token) ?? token, principal }))
    })
    .sort((a, b) => (a.channel === b.channel ? (a.principal < b.principal ? -1 : 1) : a.channel < b.channel ? -1 : 1))
})

const channel = Argument.String("channel").pipe(Argument.withDescription("The channel's id"))
const principal = Argument.String("principal").pipe(Argument.withDescription("basicauth:<id> as GET /v1/ shows it to its user"))

const changing = (verb: "grant" | "revoke", on: boolean, description: string) =>
  Command.make(verb, { channel, principal, ...natsFlags }, ({ channel, principal, ...nats }) =>
    Effect.gen(function* () {
      const changed = yield* setPublisher(channel, principal, on)
      const done = on ? `may publish on ${channel}` : `is ${changed ? "no longer" : "not"} named for ${channel}`
      // The settings are those of the service and may stand elsewhere.
      const more = changed ? (on ? "" : "; whom the settings name may still publish") : ": nothing to change"
      yield* Console.log(`${principal} ${done}${more}`)
    }).pipe(onNats(nats))
  ).pipe(Command.withDescription(description))

const list = Command.make(
  "list",
  {
    channel: channel.pipe(Argument.optional),
    json: Flag.Boolean("json").pipe(Flag.withDescription("Print JSON lines"), Flag.withDefault(false)),
    ...natsFlags
  },
  ({ channel, json, ...nats }) =>
    Effect.gen(function* () {
      const rows = yield* listed(channel)
      if (json) return yield* Effect.forEach(rows, (row) => Console.log(JSON.stringify(row)), { discard: true })
      const cells = rows.map((row) => [row.channel, row.principal])
      yield* Console.log(rows.length === 0 ? "nobody is named for a channel" : table(["CHANNEL", "PRINCIPAL"], cells))
    }).pipe(onNats(nats))
).pipe(Command.withDescription("Who was named, for which channel"))

/** The verb. */
export const permissionsCommand = Command.make("permissions").pipe(
  Command.withDescription("Name users who may publish on a channel, beside those whom the settings name for all"),
  Command.withSubcommands([
    list,
    changing("grant", true, "Let a user publish on a channel"),
    changing("revoke", false, "Take that back; whom the settings name may still publish")
  ])
)
