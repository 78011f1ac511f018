// Asks the server how all streams are, those behind buckets too: once a second while they change,
// at rest every three seconds. Each look is told to those that watch space, the clock, consumers,
// and whether LOG or WORK was replaced.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { monotonicMillis, nextMultiple } from "#clock/monotonic.ts"
import { bucketStream } from "#streams/buckets.ts"
import { streamNames } from "#streams/index.ts"
import { Nats } from "../connection/connection.ts"
import { type NatsUnavailable, unavailable } from "../connection/errors.ts"
import { type StreamInfo, streamInfo } from "../stream/info.ts"

/** Each look costs a process and its server about 1 ms of CPU. */
const everyMillis = 1_000
const restMillis = 3_000
const timeoutMillis = 2_000

/** The state of all streams at one moment. */
export interface Look {
  /** When the requests began and ended, by the monotonic clock. */
  readonly began: number
  readonly ended: number
  /** The streams that are there. */
  readonly streams: ReadonlyMap<string, StreamInfo>
}

/** Told after each look; undefined: NATS could not be asked. */
export type Told = (look: Look | undefined) => Effect.Effect<void>

/** Leases are written every second, also at rest. */
const cache = bucketStream("cache")

/** Whether nothing was stored or removed between two looks. */
const isAtRest = (before: Look | undefined, after: Look | undefined): boolean =>
  before !== undefined &&
  after !== undefined &&
  [...after.streams].every(([name, { state }]) => {
    const former = before.streams.get(name)?.state
    return name === cache || (former?.last_seq === state.last_seq && former.bytes === state.bytes)
  })

export class StreamWatch extends Context.Service<
  StreamWatch,
  {
    /** Looks now, or waits for the look that is under way. Calls no `told`. */
    readonly look: Effect.Effect<Look, NatsUnavailable>
    /** Tells of the last look now, and of each look from now on. */
    readonly tell: (told: Told) => Effect.Effect<void>
  }
>()("bellcast/nats/StreamWatch") {
  /** Looks first before the layer is made: eight requests in one write, 1 ms of CPU. */
  static readonly layer = Layer.effect(
    StreamWatch,
    Effect.gen(function* () {
      const nats = yield* Nats
      const tolds: Array<Told> = []
      let latest: Look | undefined
      const look = yield* sharedLook(nats, (seen) => {
        latest = seen
      })
      // Others log that the server is unavailable.
      const lookAndTell = Effect.gen(function* () {
        const before = latest
        const seen = yield* Effect.orElseSucceed(look, () => undefined)
        yield* Effect.forEach(tolds, (told) => told(seen), {
          concurrency: "unbounded",
          discard: true
        })
        yield* nextMultiple(isAtRest(before, seen) ? restMillis : everyMillis)
      })
      yield* Effect.ignore(look)
      yield* nextMultiple(everyMillis).pipe(
        Effect.andThen(Effect.forever(lookAndTell)),
        Effect.forkScoped
      )
      return StreamWatch.of({
        look,
        tell: (told) =>
          Effect.suspend(() => {
            tolds.push(told)
            return told(latest)
          })
      })
    })
  )
}

const lookAtAll = Effect.fnUntraced(
  function* (nats: Nats["Service"]) {
    const began = yield* monotonicMillis
    const found = yield* Effect.forEach(
      streamNames,
      (name) => Effect.map(streamInfo(nats, name, timeoutMillis), (info) => [name, info] as const),
      { concurrency: "unbounded" }
    )
    const there = found.flatMap(([name, info]) =>
      info === undefined ? [] : [[name, info] as const]
    )
    const look: Look = { began, ended: yield* monotonicMillis, streams: new Map(there) }
    return look
  },
  Effect.mapError(unavailable("state of the streams"))
)

/**
 * Returns an effect that looks, or waits for the look that is under way, as a heartbeat looks
 * twice. The look runs in the scope, because one of its callers may be interrupted.
 */
const sharedLook = Effect.fnUntraced(function* (nats: Nats["Service"], seen: (look: Look) => void) {
  const scope = yield* Effect.scope
  let underWay: Fiber.Fiber<Look, NatsUnavailable> | undefined
  const begin = Effect.forkIn(
    Effect.tap(lookAtAll(nats), (look) => Effect.sync(() => seen(look))),
    scope
  )
  return Effect.gen(function* () {
    const shared = underWay ?? (yield* begin)
    underWay = shared
    const isOver = Effect.sync(() => {
      if (underWay === shared) underWay = undefined
    })
    return yield* Effect.ensuring(Fiber.join(shared), isOver)
  })
})
