// `bellcast broadcast`: what an operator sees of broadcasts, and does with them.
import * as Command from "effect/cli/Command"
import { changeCommands } from "./change.ts"
import { broadcastList } from "./list.ts"
import { broadcastShow } from "./show.ts"
import { watchCommand } from "./watch.ts"

/** The verb. */
export const broadcastCommand = Command.make("broadcast").pipe(
  Command.withDescription("List, show, watch, pause, resume and stop broadcasts"),
  Command.withSubcommands([broadcastList, broadcastShow, watchCommand, ...changeCommands])
)
