// `bellcast broadcast`: what an operator sees of broadcasts, and does with them.
import * as Command from "effect/cli/Command"
import { cancelCommand } from "./cancel.ts"
import { listCommand, showCommand } from "./list.ts"

/** The verb. */
export const broadcastCommand = Command.make("broadcast").pipe(
  Command.withDescription("List, show and stop broadcasts"),
  Command.withSubcommands([listCommand, showCommand, cancelCommand])
)
