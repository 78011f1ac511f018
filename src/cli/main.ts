// The command line: `bellcast VERB`. A verb may end before it is done, by a signal or because its
// output cannot be written.
import { fstatSync, writeFileSync } from "node:fs"
import * as NodeRuntime from "@effect/platform-node-shared/NodeRuntime"
import * as Effect from "effect/Effect"
import { sourceLayer } from "#settings/source.ts"
import { note } from "./terminal/output.ts"
import { exitCodeOf, runVerb } from "./verbs.ts"

/** Watches for signals and for errors of standard output; the first of them counts. */
const watchEarlyEnd = (args: ReadonlyArray<string>): EarlyEnd => {
  const end: EarlyEnd = { exitCode: 0, interrupt: () => {} }
  let isEnding = false
  const begin = (cause: string) => {
    isEnding = true
    // A listener has no other end than Ctrl-C, or a reader that has read enough.
    const isNormal = verbOf(args) === "listen" && cause in exitCodes
    end.exitCode = isNormal ? 0 : (exitCodes[cause] ?? 1)
  }
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.on(signal, () => {
      if (!isEnding) begin(signal)
    })
  // A closed terminal or SSH session sends this one, and Effect does not watch it.
  process.on("SIGHUP", () => {
    if (isEnding) return
    begin("SIGHUP")
    end.interrupt()
  })
  writeWholly()
  process.stdout.on("error", ({ code = "unknown" }: NodeJS.ErrnoException) => {
    if (isEnding) return
    begin(code)
    if (code !== "EPIPE")
      Effect.runSync(note(`standard output cannot be written (${code}): a part of it is missing`))
    // The error may arrive after the end of the verb, which then had no other exit code than 0.
    process.exitCode ??= end.exitCode
    end.interrupt()
  })
  // Nothing is left to tell where the error could be shown.
  process.stderr.on("error", () => {})
  return end
}

/** As shells count: 128 and the number of the signal. EPIPE stands for SIGPIPE. */
const exitCodes: Readonly<Record<string, number>> = {
  EPIPE: 141,
  SIGHUP: 129,
  SIGINT: 130,
  SIGTERM: 143
}

interface EarlyEnd {
  /** Exit code of a verb that did not fail by itself. 0 as long as nothing ended it. */
  exitCode: number
  /** Ends the verb, so that it removes what it made. Effect does so at SIGINT and SIGTERM. */
  interrupt: () => void
}

/**
 * Writes to a file whole, or fails. Without it Node.js takes the first part of a text, which is all
 * that a nearly full disk has room for, for the whole.
 */
const writeWholly = () => {
  if (!fstatSync(1).isFile()) return
  process.stdout._write = (chunk: string | Uint8Array, _encoding, done) => {
    try {
      writeFileSync(1, chunk)
    } catch (error) {
      return done(error as NodeJS.ErrnoException)
    }
    done()
  }
}

/** The verb among the arguments. */
const verbOf = (args: ReadonlyArray<string>) => args.find((arg) => !arg.startsWith("-"))

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
