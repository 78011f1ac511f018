// `bellcast rebuild`: makes the buckets equal to what the streams say.
import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { monotonicMillis } from "#clock/clocks.ts"
import { type HowFar, inWords, Notes } from "#rebuild/notes.ts"
import { rebuild } from "#rebuild/rebuild.ts"
import { frugally } from "./nats/frugal.ts"
import { natsFlags, onNats } from "./nats/on-nats.ts"
import { failedBy, note, table } from "./terminal/output.ts"

/** How far the rebuild is, is printed this often. */
const reachMillis = 10_000

const makeReach = Effect.map(monotonicMillis, (startedAt) => {
  let saidAt = startedAt
  return (howFar: HowFar) =>
    Effect.flatMap(monotonicMillis, (now) => {
      if (now - saidAt < reachMillis) return Effect.void
      saidAt = now
      return note(inWords(howFar))
    })
})

/** The verb. */
export const rebuildCommand = Command.make("rebuild", natsFlags, (nats) =>
  Effect.gen(function* () {
    const startedAt = yield* monotonicMillis
    const done = yield* rebuild().pipe(
      Effect.provideService(Notes, { note, reach: yield* makeReach }),
      Effect.catchTag("RebuildFailed", failedBy)
    )
    const rows = done.map(({ bucket, changed, entries }) => [bucket, entries, changed])
    const millis = (yield* monotonicMillis) - startedAt
    yield* Console.log(`${table(["BUCKET", "ENTRIES", "CHANGED"], rows)}\nrebuilt in ${millis} ms`)
  }).pipe(onNats(nats, { startIt: true }), frugally)
).pipe(
  Command.withDescription(
    "Make the buckets equal to what the streams say; stop projection and tally first"
  )
)
