// `bellcast broadcast cancel BROADCAST`: no push of it is sent a second later.
import * as Console from "effect/Console"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { changeState, originOf } from "#nats/kv/broadcast-state.ts"
import { readServerTime } from "#nats/watch/server-time.ts"
import { broadcastArgument, commandOf } from "../broadcast.ts"
import { natsFlags, onNats } from "../nats/nats.ts"
import { failed } from "../terminal/failed.ts"
import { onOff } from "../terminal/flags.ts"

const cancel = Effect.fnUntraced(function* (broadcast: number) {
  yield* commandOf(broadcast)
  const origin = yield* originOf(broadcast)
  if (origin === undefined) return yield* failed(`broadcast ${broadcast} cannot be read`)
  const at = (yield* readServerTime).serverMillis
  const { state } = yield* changeState(origin, "cancelled", "operator", at)
  return state === "cancelled"
    ? state
    : yield* failed(`broadcast ${broadcast} is ${state}: there is nothing to cancel`)
})

const flags = {
  broadcast: broadcastArgument.pipe(Argument.withDescription("The broadcast to cancel")),
  json: onOff("json", "Print one JSON object"),
  ...natsFlags
}

/** The verb. */
export const cancelCommand = Command.make("cancel", flags, ({ broadcast, json, ...nats }) =>
  cancel(broadcast).pipe(
    Effect.flatMap((state) =>
      Console.log(
        json
          ? JSON.stringify({ broadcast, state })
          : `broadcast ${broadcast} is cancelled: within a second no push of it is sent any more`
      )
    ),
    onNats(nats)
  )
).pipe(
  Command.withDescription("Cancel a broadcast, for ever: pushes that are not sent yet never are"),
  Command.withExamples([
    { command: "bellcast broadcast cancel 5", description: "Stop the broadcast with the id 5" }
  ])
)
