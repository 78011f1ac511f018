// `bellcast broadcast`: what an operator sees of broadcasts, and does with them.
import * as Command from "effect/cli/Command"
import { changeCommands } from "./change.ts"
import { listCommand } from "./list.ts"
import { showCommand } from "./show.ts"
import { watchCommand } from "./watch.ts"

/** The verb. */
export const broadcastCommand = Command.make("broadcast").pipe(
  Command.withDescription("List, show, watch, pause, resume and stop broadcasts"),
  Command.withSubcommands([listCommand, showCommand, watchCommand, ...changeCommands])
)
