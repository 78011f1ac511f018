// A broadcast as verbs are told of it: by the sequence of its command in LOG.
import { Effect } from "effect"
import { Argument } from "effect/cli"
import { EventLog } from "#nats/stream/event-log.ts"
import { commandKind } from "#streams/subjects.ts"
import { VerbFailed } from "./nats/nats.ts"

/** Its id; the server would answer a sequence below 1 with an error of its own. */
export const broadcastArgument = Argument.Int("broadcast").pipe(
  Argument.filter(
    (broadcast) => broadcast >= 1,
    (broadcast) => `Expected a whole number from 1 on, got ${broadcast}`
  )
)

/** The command. Fails when there is none with this sequence, or it is another kind. */
export const commandOf = Effect.fnUntraced(function* (broadcast: number) {
  const log = yield* EventLog
  const stored = yield* log.at("log", broadcast)
  if (stored === undefined || commandKind(stored.subject) !== "broadcast")
    return yield* new VerbFailed({ message: `there is no broadcast ${broadcast}` })
  return stored
})
