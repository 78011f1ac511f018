// `bellcast channel show CHANNEL`: its counts, whom grants name, and what was sent to it last.

import * as Effect from "effect/Effect"
import { listBroadcasts } from "#broadcasts/list.ts"
import { noPublishers } from "#domain/publisher.ts"
import { viewOf } from "#gateway/broadcasts/view.ts"
import { channelCounts } from "#gateway/channels/channel.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { keys } from "#streams/buckets.ts"
import { channelBytesMax, channelToken, isChannelToken } from "#streams/tokens.ts"
import { printable } from "#telemetry/printable.ts"
import { shownBroadcasts } from "../broadcast.ts"
import { showOne } from "../nats/show-one.ts"
import { failed } from "../terminal/failed.ts"
import { argument } from "../terminal/flags.ts"
import { tableOr } from "../terminal/table.ts"

/** The newest broadcasts that are shown. */
const broadcastsMax = 5

const show = Effect.fnUntraced(function* (id: string) {
  const channel = channelToken(id)
  if (!isChannelToken(channel))
    return yield* failed(`a channel has 1 to ${channelBytesMax} bytes and no slash`)
  const { push, registrations } = yield* channelCounts(channel)
  const grants = yield* (yield* Buckets).get("permissions", keys.publishers(channel))
  const { principals, registrars } = grants?.value ?? noPublishers
  const { rows } = yield* listBroadcasts({
    channel,
    limit: broadcastsMax,
    ...{ behind: undefined, since: undefined, before: undefined },
    ...{ publisher: undefined, state: undefined },
    isShown: () => Effect.succeed(true)
  })
  const broadcasts = yield* Effect.forEach(rows, ({ origin, standing }) => viewOf(origin, standing))
  return { id, registrations, push, publishers: principals, registrars, broadcasts }
})

const textOf = (channel: Effect.Success<ReturnType<typeof show>>): string => {
  const { broadcasts, id, publishers, push, registrars, registrations } = channel
  const named = (who: ReadonlyArray<string>) => who.map(printable).join(", ") || "nobody"
  return [
    `channel        ${printable(id)}`,
    `registrations  ${registrations}`,
    `pushes         ${push}`,
    `may publish    ${named(publishers)}, beside those whom the settings name`,
    `may register   ${named(registrars)}, where the settings close the channel`,
    "",
    tableOr(broadcasts, shownBroadcasts)
  ].join("\n")
}

/** The verb. */
export const channelShow = showOne({
  named: argument("channel", "The channel's id"),
  read: show,
  textOf,
  description: "Show a channel: its counts, its grants and its last broadcasts",
  example: { command: "bellcast channel show news", description: "Show the channel news" }
})
