// Says in time that a stream fills up: a full one refuses (streams/log.ts, streams/work.ts), and by then it is late.
import { Effect, Layer, Schedule } from "effect"
import { type BucketName, buckets } from "#streams/buckets.ts"
import { streams } from "#streams/index.ts"
import { Nats } from "./nats.ts"
import { bucketStream } from "./provision.ts"

/** Each with what makes it larger. */
const watched = [
  ...Object.entries(streams).map(([key, { name }]) => ({
    name,
    larger: { setting: `BELLCAST_${key.toUpperCase()}_BYTES_MAX` }
  })),
  ...(Object.keys(buckets) as Array<BucketName>)
    .map(bucketStream)
    .map((name) => ({ name, larger: { command: `nats stream edit ${name} --max-bytes` } }))
]

const everyMillis = 30_000
const timeoutMillis = 5_000

/** 0 below 70 %, 1 from there, 2 from 90 %. */
const levelOf = (bytes: number, bytesMax: number): number =>
  bytesMax <= 0 ? 0 : bytes >= 0.9 * bytesMax ? 2 : bytes >= 0.7 * bytesMax ? 1 : 0

/** One line in the log whenever a stream, or that behind a bucket, rises above 70 % (a warning) or 90 % (an error) of its bytes; looked at every 30 seconds. */
export const fullnessLayer = Layer.effectDiscard(
  Effect.gen(function* () {
    const { jsm } = yield* Nats
    const levels = new Map<string, number>()
    const look = Effect.fnUntraced(function* ({ larger, name: stream }: (typeof watched)[number]) {
      const { config, state } = yield* Effect.tryPromise(() => jsm.streams.info(stream))
      const level = levelOf(state.bytes, config.max_bytes)
      const before = levels.get(stream) ?? 0
      levels.set(stream, level)
      if (level <= before) return
      const fields = { stream, bytes: state.bytes, bytesMax: config.max_bytes, ...larger }
      if (level === 1) yield* Effect.logWarning("a stream is more than 70 % full", fields)
      else
        yield* Effect.logError(
          "a stream is more than 90 % full, and refuses when it is full",
          fields
        )
    })
    yield* Effect.forEach(watched, (each) =>
      // Without the server there is nothing to tell, and others tell that.
      look(each).pipe(Effect.timeout(timeoutMillis), Effect.ignore)
    ).pipe(Effect.repeat(Schedule.spaced(everyMillis)), Effect.forkScoped)
  })
)
