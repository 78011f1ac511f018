// Every verb of `bellcast`, and how one is run. Each verb is a file or folder.
import * as NodeChildProcessSpawner from "@effect/platform-node-shared/NodeChildProcessSpawner"
import * as NodeFileSystem from "@effect/platform-node-shared/NodeFileSystem"
import * as NodePath from "@effect/platform-node-shared/NodePath"
import * as NodeStdio from "@effect/platform-node-shared/NodeStdio"
import * as NodeTerminal from "@effect/platform-node-shared/NodeTerminal"
import * as Cause from "effect/Cause"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import { settingsFault } from "#settings/every-setting.ts"
import { Source } from "#settings/source.ts"
import packageJson from "../../package.json" with { type: "json" }
import { auditCommand } from "./audit.ts"
import { broadcastCommand } from "./broadcast.ts"
import { channelCommand } from "./channel.ts"
import { clientCommand } from "./client.ts"
import { compactCommand } from "./compact.ts"
import { draftCommand } from "./draft.ts"
import { keysCommand } from "./keys/keys.ts"
import { listenCommand } from "./listen/listen.ts"
import { exportCommand } from "./moving/export.ts"
import { importCommand } from "./moving/import.ts"
import { permissionsCommand } from "./permissions.ts"
import { publishCommand } from "./publish.ts"
import { rebuildCommand } from "./rebuild.ts"
import { restoreCommand } from "./restore.ts"
import { signUserCommand } from "./sign-user.ts"
import { streamsCommand } from "./streams.ts"
import { defectText, note, noted, usageLayer, VerbFailed } from "./terminal/output.ts"
import { tokenCommand } from "./token.ts"
import { deadCommand, redriveCommand } from "./undelivered.ts"
import { userCommand } from "./user.ts"
import { verifyCommand } from "./verify.ts"

const bellcast = Command.make("bellcast").pipe(
  Command.withDescription("Operate and try out a Bellcast service"),
  Command.withSubcommands([
    listenCommand,
    publishCommand,
    clientCommand,
    auditCommand,
    broadcastCommand,
    draftCommand,
    channelCommand,
    userCommand,
    deadCommand,
    redriveCommand,
    streamsCommand,
    rebuildCommand,
    verifyCommand,
    compactCommand,
    restoreCommand,
    permissionsCommand,
    tokenCommand,
    signUserCommand,
    keysCommand,
    importCommand,
    exportCommand
  ])
)

/**
 * Fails if the settings file has errors: without some of its lines a verb might work on another
 * NATS.
 */
const readableFile = Effect.gen(function* () {
  const { faults } = yield* Source
  if (faults.length > 0) return yield* settingsFault(faults)
}).pipe(noted)

/** The services of Node.js that a command of `effect/cli` may use. */
const nodeServices = NodeChildProcessSpawner.layer.pipe(
  Layer.provideMerge(
    Layer.mergeAll(NodeFileSystem.layer, NodePath.layer, NodeStdio.layer, NodeTerminal.layer)
  )
)

/** Runs the verb that these arguments name. Verbs print their own errors. */
export const runVerb = (args: ReadonlyArray<string>) =>
  readableFile.pipe(
    Effect.andThen(Command.runWith(bellcast, { version: packageJson.version })(args)),
    Effect.tapDefect((defect) => note(defectText(defect))),
    Effect.provide([nodeServices, FetchHttpClient.layer, usageLayer])
  )

/** Exit code of a verb. `ofEarlyEnd`: that of what ended the verb before it was done, if any. */
export const exitCodeOf = (exit: Exit.Exit<unknown, unknown>, ofEarlyEnd = 0): number => {
  if (!Exit.isFailure(exit) || Cause.hasInterruptsOnly(exit.cause)) return ofEarlyEnd
  const error = Cause.squash(exit.cause)
  return error instanceof VerbFailed ? (error.exitCode ?? 1) : 1
}
