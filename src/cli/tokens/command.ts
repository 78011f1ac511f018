// `bellcast token create|list|revoke`: tokens of servers that publish (the policy `token`).
import * as Command from "effect/cli/Command"
import { createCommand } from "./create.ts"
import { listCommand } from "./list.ts"
import { revokeCommand } from "./revoke.ts"

/** The verb. */
export const tokenCommand = Command.make("token").pipe(
  Command.withDescription("Make and revoke tokens of servers"),
  Command.withSubcommands([createCommand, listCommand, revokeCommand])
)
