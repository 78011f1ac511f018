// Says which scheduled broadcasts start although their publisher lost a right: rights count when a
// broadcast is accepted.
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { scheduledBroadcasts } from "#broadcasts/states.ts"
import { readRecipients } from "#broadcasts/whole-broadcast.ts"
import { publisherOf } from "#domain/broadcast-publisher.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { ChannelToken } from "#streams/tokens.ts"

/** Prints the broadcasts that `principal` published; with `channel`, only those to it. */
export const printLeftStanding = Effect.fnUntraced(function* (
  principal: string,
  channel?: ChannelToken
) {
  const log = yield* EventLog
  const own = (yield* scheduledBroadcasts).filter(
    ({ source, stored }) =>
      // By a group or a system principal, any publisher may have had the right.
      /^(system\.|group:)/.test(principal) || publisherOf(source, stored.header) === principal
  )
  const left = yield* Effect.filter(own, ({ stored }) =>
    channel === undefined
      ? Effect.succeed(true)
      : Effect.map(readRecipients(log, stored), (to) => to?.channels.includes(channel) ?? false)
  )
  if (left.length === 0) return
  const ids = left.map(({ stored }) => stored.seq).join(", ")
  yield* Console.log(
    `still scheduled, and sent at their time unless cancelled (bellcast broadcast cancel): ${ids}`
  )
})
