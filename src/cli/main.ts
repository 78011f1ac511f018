// The command line: `bellcast VERB`. Each verb is a file or folder; this is the list of them.
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

/**
 * Fails if the settings file has errors: without some of its lines a verb might work on another
 * NATS.
 */
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
    // Ctrl-C is the normal end of a listener, not a failure.
    teardown: (exit, onExit) =>
      onExit(Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause) ? 1 : 0)
  })
)
