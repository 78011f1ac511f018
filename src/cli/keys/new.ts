// `bellcast keys new`, and `keys` alone: fresh secrets, printed or written into a file.

import { fstatSync } from "node:fs"
import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { named, optional } from "../terminal/input.ts"
import { note, noted } from "../terminal/output.ts"
import { addToFile } from "./env-file.ts"
import { newParts, textOf } from "./lines.ts"

/** Whether standard output is a file that other users may read. */
const isReadByOthers = (): boolean => {
  const output = fstatSync(1)
  return output.isFile() && (output.mode & 0o077) !== 0
}

/** Prints fresh secrets. */
export const printNew = Effect.gen(function* () {
  yield* Console.log(textOf(newParts()))
  if (isReadByOthers())
    yield* note("others may read the file that these keys go to: chmod 600 it, or use --env FILE")
})

const writeNew = Effect.fnUntraced(function* (file: string) {
  const added = yield* addToFile(file, newParts())
  yield* note(
    added.length === 0
      ? `${file} has every secret: nothing is changed`
      : `${file} has now ${added.join(", ")}; fill in what is empty`
  )
}, noted)

/** The verb. */
export const newCommand = Command.make(
  "new",
  {
    env: optional(
      named("env", "FILE"),
      "Write into this file, for its owner alone; what stands there stays as it is"
    )
  },
  ({ env }) => (Option.isNone(env) ? printNew : writeNew(env.value))
).pipe(
  Command.withDescription(
    "Make a VAPID key pair, a user id secret and a password for NATS, for an .env file"
  )
)
