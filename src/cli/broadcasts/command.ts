// `bellcast broadcast cancel`: what an operator does with a broadcast.
import * as Command from "effect/cli/Command"
import { cancelCommand } from "./cancel.ts"

/** The verb. */
export const broadcastCommand = Command.make("broadcast").pipe(
  Command.withDescription("Stop a broadcast"),
  Command.withSubcommands([cancelCommand])
)
