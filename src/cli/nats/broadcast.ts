// The argument BROADCAST of verbs: the sequence of the broadcast's command in LOG.
import * as Argument from "effect/cli/Argument"
import * as Effect from "effect/Effect"
import { originIn } from "#broadcasts/state.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { commandKind } from "#streams/subjects.ts"
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
