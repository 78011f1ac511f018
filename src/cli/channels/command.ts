// `bellcast channel`: what an operator sees of channels.
import * as Command from "effect/cli/Command"
import { listCommand } from "./list.ts"
import { showCommand } from "./show.ts"

/** The verb. */
export const channelCommand = Command.make("channel").pipe(
  Command.withDescription("List and show channels"),
  Command.withSubcommands([listCommand, showCommand])
)
