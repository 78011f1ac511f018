// The `bellcast` command line: `node src/cli/main.ts VERB`. One file a verb; this is the list of them.
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Effect, Exit } from "effect"
import { Command } from "effect/cli"
import { FetchHttpClient } from "effect/http"
import { settingsFault } from "#settings/every-setting.ts"
import { Source, sourceLayer } from "#settings/source.ts"
import packageJson from "../../package.json" with { type: "json" }
import { auditCommand } from "./audit.ts"
import { deadCommand } from "./dead.ts"
import { keysCommand } from "./keys/keys.ts"
import { listenCommand } from "./listen/listen.ts"
import { permissionsCommand } from "./permissions.ts"
import { rebuildCommand } from "./rebuild.ts"
import { redriveCommand } from "./redrive.ts"
import { restoreCommand } from "./restore/restore.ts"
import { streamsCommand } from "./streams.ts"
import { note } from "./terminal/note.ts"
import { usageLayer } from "./terminal/usage.ts"

const bellcast = Command.make("bellcast").pipe(
  Command.withDescription("Operate and try out a Bellcast service"),
  Command.withSubcommands([
    listenCommand,
    auditCommand,
    deadCommand,
    redriveCommand,
    streamsCommand,
    rebuildCommand,
    restoreCommand,
    permissionsCommand,
    keysCommand
  ])
)

/** Verbs read the settings of the service; with a file that says something else than was meant they might work on another NATS. */
const readableFile = Effect.gen(function* () {
  const { faults } = yield* Source
  if (faults.length > 0) return yield* settingsFault(faults)
}).pipe(Effect.tapError(({ message }) => note(message)))

readableFile.pipe(
  Effect.andThen(Command.run(bellcast, { version: packageJson.version })),
  Effect.provide([NodeServices.layer, FetchHttpClient.layer, sourceLayer, usageLayer]),
  NodeRuntime.runMain({
    // Verbs print their own errors.
    disableErrorReporting: true,
    // Ctrl-C is how a listener ends: not a failure.
    teardown: (exit, onExit) =>
      onExit(Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause) ? 1 : 0)
  })
)
