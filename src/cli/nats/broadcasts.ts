// How verbs find broadcasts: by the argument BROADCAST, the sequence of the broadcast's command in
// LOG, and by a publisher who lost a right.
import * as Console from "effect/Console"
import * as Argument from "effect/cli/Argument"
import * as Effect from "effect/Effect"
import { originIn } from "#broadcasts/state.ts"
import { scheduledBroadcasts } from "#broadcasts/states.ts"
import { readRecipients } from "#broadcasts/whole-broadcast.ts"
import { publisherOf } from "#domain/broadcast.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { commandKind } from "#streams/subjects.ts"
import type { ChannelToken } from "#streams/tokens.ts"
import { failed } from "../terminal/output.ts"

/** The id of a broadcast. NATS would refuse a sequence below 1 with an unclear error. */
export const broadcastArgument = Argument.Int("broadcast").pipe(
  Argument.filter(
    (broadcast) => broadcast >= 1,
    (broadcast) => `Expected a whole number from 1 on, got ${broadcast}`
  )
)

/** The command of a broadcast. Fails if the sequence has none, or another kind of message. */
export const commandOf = Effect.fnUntraced(function* (broadcast: number) {
  const log = yield* EventLog
  const stored = yield* log.at("log", broadcast)
  if (stored === undefined || commandKind(stored.subject) !== "broadcast")
    return yield* failed(`there is no broadcast ${broadcast}`)
  return stored
})

/** The broadcast of a command, with its source and its channel. Fails as {@link commandOf} does. */
export const demandBroadcast = Effect.fnUntraced(function* (broadcast: number) {
  const origin = originIn(yield* commandOf(broadcast))
  return origin ?? (yield* failed(`broadcast ${broadcast} cannot be read`))
})

/**
 * Prints the scheduled broadcasts that `principal` published; with `channel`, only those to it.
 * These broadcasts start although their publisher lost a right: rights count when a broadcast is
 * accepted.
 */
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
