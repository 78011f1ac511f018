// `bellcast channel`: what an operator sees of channels.
import * as Command from "effect/cli/Command"
import { channelList } from "./list.ts"
import { channelShow } from "./show.ts"

/** The verb. */
export const channelCommand = Command.make("channel").pipe(
  Command.withDescription("List and show channels"),
  Command.withSubcommands([channelList, channelShow])
)
