// How much room streams and buckets have left. A full stream refuses what it is given, so the
// service stops what would make it grow before that, and keeps the rest for what must go on.
import { Clock, Context, Effect, Layer, Schedule } from "effect"
import { type BucketName, bucketStream, buckets } from "#streams/buckets.ts"
import { streams } from "#streams/index.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { Nats } from "../connection/connection.ts"
import { type NatsUnavailable, unavailable } from "../connection/errors.ts"

/** The state of one stream, of LOG and WORK or behind a bucket. */
export interface Room {
  readonly stream: string
  readonly bytes: number
  /** What it may hold; 0 or less: anything. */
  readonly bytesMax: number
}

/**
 * From this share of its bytes on a stream is full: nothing more that makes it grow is asked for.
 * The rest is for deletions and for facts that workers record. 5 % of 4 GiB are 200 MiB.
 */
export const fullShare = 0.95

export const isFull = ({ bytes, bytesMax }: Omit<Room, "stream">): boolean =>
  bytesMax > 0 && bytes >= fullShare * bytesMax

/** Those that refuse what they have no room for. */
export const refusing: ReadonlyArray<string> = [
  ...Object.values(streams).map(({ name }) => name),
  ...(Object.keys(buckets) as Array<BucketName>)
    .filter((bucket) => !buckets[bucket].forgets)
    .map(bucketStream)
]

const everyMillis = 1_000
const timeoutMillis = 2_000

interface StreamInfo {
  readonly config: { readonly max_bytes: number }
  readonly state: { readonly bytes: number }
}

export class Space extends Context.Service<
  Space,
  {
    /** What the latest look found. */
    readonly rooms: () => ReadonlyArray<Room>
    /** Whether one of these streams is full, by the latest look or a refusal since. */
    readonly isFull: (streams: ReadonlyArray<string>) => boolean
    /** The server refused a write to this stream for lack of room. Holds until the next look. */
    readonly refused: (stream: string) => Effect.Effect<void>
    /** Looks at every stream now. */
    readonly look: Effect.Effect<ReadonlyArray<Room>, NatsUnavailable>
  }
>()("bellcast/nats/Space") {
  /** Looks every second for as long as it lives: eight requests, 1 ms of CPU. */
  static readonly layer = Layer.effect(
    Space,
    Effect.gen(function* () {
      const { request } = yield* Nats
      let rooms: ReadonlyArray<Room> = []
      /** Streams that refused a write, and when, in milliseconds since the epoch. */
      const refusals = new Map<string, number>()
      const warn = makeRateLimitedLog("a stream has no room for what it was given", Effect.logError)

      const roomOf = (stream: string) =>
        request<StreamInfo>(`$JS.API.STREAM.INFO.${stream}`, "", timeoutMillis).pipe(
          Effect.map(({ config, state }): Room => {
            return { stream, bytes: state.bytes, bytesMax: config.max_bytes }
          }),
          Effect.mapError(unavailable(`room of ${stream}`))
        )
      const look = Effect.gen(function* () {
        const began = yield* Clock.currentTimeMillis
        rooms = yield* Effect.forEach(refusing, roomOf, { concurrency: "unbounded" })
        for (const [stream, at] of refusals) if (at < began) refusals.delete(stream)
        return rooms
      })
      yield* look.pipe(
        // Without the server nothing is known, and others say that it is away.
        Effect.ignore,
        Effect.repeat(Schedule.spaced(everyMillis)),
        Effect.forkScoped
      )
      return Space.of({
        rooms: () => rooms,
        isFull: (names) =>
          names.some((name) => refusals.has(name)) ||
          rooms.some((room) => names.includes(room.stream) && isFull(room)),
        refused: Effect.fnUntraced(function* (stream: string) {
          refusals.set(stream, yield* Clock.currentTimeMillis)
          yield* warn({ stream })
        }),
        look
      })
    })
  )
}
