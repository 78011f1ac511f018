// `bellcast broadcast pause|resume|cancel BROADCAST`: obeyed a second later.
import * as Console from "effect/Console"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { changeState } from "#broadcasts/state.ts"
import type { WantedState } from "#domain/broadcast-state.ts"
import { readServerTime } from "#nats/watch/server-time.ts"
import { broadcastArgument, demandBroadcast } from "../nats/broadcast.ts"
import { natsFlags, onNats } from "../nats/nats.ts"
import { failed } from "../terminal/failed.ts"
import { objectFlag } from "../terminal/flags.ts"

const change = Effect.fnUntraced(function* (broadcast: number, verb: string, wanted: WantedState) {
  const origin = yield* demandBroadcast(broadcast)
  const at = (yield* readServerTime).serverMillis
  const { isChanged, state } = yield* changeState(origin, wanted, "operator", at)
  return isChanged || state === wanted
    ? state
    : yield* failed(`broadcast ${broadcast} is ${state}: there is nothing to ${verb}`)
})

const changeFlags = {
  broadcast: broadcastArgument.pipe(Argument.withDescription("The id of the broadcast")),
  json: objectFlag,
  ...natsFlags
}

/** A verb that changes the state of a broadcast. */
const changing = (verb: string, wanted: WantedState, description: string) =>
  Command.make(verb, changeFlags, ({ broadcast, json, ...nats }) =>
    change(broadcast, verb, wanted).pipe(
      Effect.flatMap((state) =>
        Console.log(
          json ? JSON.stringify({ broadcast, state }) : `broadcast ${broadcast} is ${state}`
        )
      ),
      onNats(nats)
    )
  ).pipe(
    Command.withDescription(description),
    Command.withExamples([
      { command: `bellcast broadcast ${verb} 5`, description: "For the broadcast with the id 5" }
    ])
  )

export const changeCommands = [
  changing("pause", "paused", "Hold a broadcast: within a second no push of it begins"),
  changing("resume", "running", "Go on with a paused broadcast"),
  changing("cancel", "cancelled", "Stop a broadcast for ever: what is not sent yet never is")
] as const
