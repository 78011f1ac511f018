// The command line: `bellcast VERB`.
import * as NodeRuntime from "@effect/platform-node-shared/NodeRuntime"
import * as Effect from "effect/Effect"
import { sourceLayer } from "#settings/source.ts"
import { exitCodeOf, runVerb } from "./verbs.ts"

runVerb(process.argv.slice(2)).pipe(
  Effect.provide(sourceLayer),
  NodeRuntime.runMain({
    // Verbs print their own errors.
    disableErrorReporting: true,
    teardown: (exit, onExit) => onExit(exitCodeOf(exit))
  })
)
