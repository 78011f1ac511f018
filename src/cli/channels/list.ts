// `bellcast channel list`: the channels that somebody is registered to, the largest first.
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import { matchesWildcard } from "#basics/wildcard.ts"
import { emptyPushes, pushesSince } from "#domain/outcome.ts"
import { emptyChannel } from "#domain/registration.ts"
import { scanEntries } from "#nats/kv/entries.ts"
import { channelOfKey } from "#streams/buckets.ts"
import { type ChannelToken, decodeToken } from "#streams/tokens.ts"
import { natsFlags, onNats } from "../nats/nats.ts"
import { jsonFlag, limitFlag, named } from "../terminal/flags.ts"
import { note } from "../terminal/note.ts"
import { printRows } from "../terminal/table.ts"

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

/** The verb. */
export const channelList = Command.make(
  "list",
  {
    name: named("name", "PATTERN").pipe(
      Flag.withDescription("Only these, by a pattern in which * stands for any text"),
      Flag.withDefault("*")
    ),
    limit: limitFlag,
    json: jsonFlag,
    ...natsFlags
  },
  ({ json, limit, name, ...nats }) =>
    Effect.gen(function* () {
      const found = (yield* channels).filter(({ id }) => matchesWildcard(name, id))
      yield* printRows(json, found.slice(0, limit), shownChannels)
      if (found.length > limit) yield* note(`${found.length - limit} more: --limit`)
    }).pipe(onNats(nats))
).pipe(
  Command.withDescription("List the channels that somebody is registered to, the largest first"),
  Command.withExamples([
    { command: "bellcast channel list --name 'news*'", description: "Those that begin with news" }
  ])
)
