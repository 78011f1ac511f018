// A verb `show`: prints one thing that NATS has, as text or as one JSON object.
import * as Console from "effect/Console"
import type * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { printableJson } from "#telemetry/printable.ts"
import { objectFlag } from "../terminal/input.ts"
import { type Failure, natsFlags, onNats } from "./nats.ts"

interface Shown<I, A, R> {
  /** The argument that names the thing. */
  readonly named: Argument.Argument<I>
  readonly read: (name: I) => Effect.Effect<A, Failure, R>
  readonly textOf: (found: A) => string
  readonly description: string
  readonly example: Command.Command.Example
}

export const showOne = <I, A, R>({ description, example, named, read, textOf }: Shown<I, A, R>) =>
  Command.make("show", { named, json: objectFlag, ...natsFlags }, ({ json, named, ...nats }) =>
    read(named).pipe(
      Effect.flatMap((found) => Console.log(json ? printableJson(found) : textOf(found))),
      onNats(nats)
    )
  ).pipe(Command.withDescription(description), Command.withExamples([example]))
