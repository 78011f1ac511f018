// The command line: `bellcast VERB`.
import * as NodeRuntime from "@effect/platform-node-shared/NodeRuntime"
import * as Effect from "effect/Effect"
import { sourceLayer } from "#settings/source.ts"
import { watchEarlyEnd } from "./terminal/early-end.ts"
import { exitCodeOf, runVerb } from "./verbs.ts"

const args = process.argv.slice(2)
const earlyEnd = watchEarlyEnd(args)

Effect.withFiber((fiber) => {
  earlyEnd.interrupt = () => fiber.interruptUnsafe(fiber.id)
  return runVerb(args)
}).pipe(
  Effect.provide(sourceLayer),
  NodeRuntime.runMain({
    // Verbs print their own errors.
    disableErrorReporting: true,
    teardown: (exit, onExit) => onExit(exitCodeOf(exit, earlyEnd.exitCode))
  })
)
