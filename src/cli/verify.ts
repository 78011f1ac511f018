// `bellcast verify`: compares the buckets with what the streams say, while the service runs.
import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import type { Difference } from "#rebuild/rules.ts"
import { type Verified, verify } from "#rebuild/verify.ts"
import { buckets, projections } from "#streams/buckets.ts"
import { printableJson } from "#telemetry/redaction.ts"
import { frugally } from "./nats/frugal.ts"
import { natsFlags, onNats } from "./nats/on-nats.ts"
import { objectFlag } from "./terminal/input.ts"
import { defectText, failed, note, table, VerbFailed } from "./terminal/output.ts"

/** The exit code where nothing is known of the buckets. */
const notChecked = 2

const cellsOf = ({ bucket, entry, is, members, since, stream }: Difference) => [
  buckets[bucket].name,
  entry,
  is,
  since === undefined ? undefined : `${stream} ${since}`,
  members.length === 0 ? undefined : members.join("; ")
]

const textOf = ({ count, differences, entries, position }: Verified): string => {
  const all = projections.map((bucket) => [buckets[bucket].name, entries[bucket] ?? 0])
  const upTo = `LOG up to ${position.projector}, WORK up to ${position.tally}`
  if (count === 0) return `${table(["BUCKET", "ENTRIES"], all)}\nthe same as ${upTo}`
  const rows = table(["BUCKET", "ENTRY", "IS", "SINCE", "DIFFERS"], differences.map(cellsOf))
  return count > differences.length ? `${rows}\n(${count} in all)` : rows
}

/** The verb. */
export const verifyCommand = Command.make(
  "verify",
  { json: objectFlag, ...natsFlags },
  ({ json, ...nats }) =>
    Effect.gen(function* () {
      const found = yield* verify().pipe(
        Effect.catchTag("NotChecked", ({ message }) =>
          Effect.fail(new VerbFailed({ message: `not checked: ${message}`, exitCode: notChecked }))
        )
      )
      const { position, ...others } = found
      const object = { ...others, log: position.projector, work: position.tally }
      yield* Console.log(json ? printableJson(object) : textOf(found))
      if (found.count > 0)
        return yield* new VerbFailed({
          message:
            `${found.count} ${found.count === 1 ? "entry differs" : "entries differ"} from what ` +
            "the streams say: `bellcast rebuild` mends the buckets; please report this",
          exitCode: 1
        })
    }).pipe(
      onNats(nats),
      frugally,
      // After any other failure, too, and after a defect, the buckets were not compared.
      Effect.catchDefect((defect) =>
        Effect.andThen(note(defectText(defect)), failed(defectText(defect)))
      ),
      Effect.mapError(({ exitCode = notChecked, message }) => new VerbFailed({ message, exitCode }))
    )
).pipe(
  Command.withDescription(
    "Compare the buckets with what the streams say, and change nothing; the service may run"
  )
)
