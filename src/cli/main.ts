// The `bellcast` command line: `node src/cli/main.ts VERB`. One file a verb; this is the list of them.
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Cause, Effect, Exit } from "effect"
import { Command } from "effect/cli"
import { FetchHttpClient } from "effect/http"
import packageJson from "../../package.json" with { type: "json" }
import { auditCommand } from "./audit.ts"
import { deadCommand } from "./dead.ts"
import { keysCommand } from "./keys.ts"
import { listenCommand } from "./listen.ts"
import { rebuildCommand } from "./rebuild.ts"
import { restoreCommand } from "./restore.ts"
import { streamsCommand } from "./streams.ts"

const bellcast = Command.make("bellcast").pipe(
  Command.withDescription("Operate and try out a Bellcast service"),
  Command.withSubcommands([listenCommand, auditCommand, deadCommand, streamsCommand, rebuildCommand, restoreCommand, keysCommand])
)

Command.run(bellcast, { version: packageJson.version }).pipe(
  Effect.provide([NodeServices.layer, FetchHttpClient.layer]),
  NodeRuntime.runMain({
    // Verbs print their own errors.
    disableErrorReporting: true,
    // Ctrl-C is how a listener ends: not a failure.
    teardown: (exit, onExit) => onExit(Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause) ? 1 : 0)
  })
)
