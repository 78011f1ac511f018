// Asks the server how all streams are, those behind buckets too: once a second while they change.
// At rest it asks every three seconds how LOG and WORK are, and every 15 how all are. Each look is
// told to those that watch space, the clock, consumers, and whether LOG or WORK was replaced.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { monotonicMillis, nextMultiple } from "#clock/monotonic.ts"
import { bucketStream } from "#streams/buckets.ts"
import { allStreams, streamNames } from "#streams/index.ts"
import { Nats } from "../connection/connection.ts"
import { type NatsUnavailable, unavailable } from "../connection/errors.ts"
import { type StreamInfo, streamInfo } from "../stream/info.ts"

/** A look at all streams costs a process and its server about 1 ms of CPU. */
const everyMillis = 1_000
const restMillis = 3_000
/** At rest, all streams are looked at after so many looks at those that move first. */
const restLooks = 5
const timeoutMillis = 2_000

/** The state of all streams at one moment. */
export interface Look {
  /** When the requests began and ended, by the monotonic clock. */
  readonly began: number
  readonly ended: number
  /** False: LOG, WORK and the bucket of leases are as of now, the others as of an earlier look. */
  readonly isWhole: boolean
  /** The streams that are there. */
  readonly streams: ReadonlyMap<string, StreamInfo>
}

/** Told after each look; undefined: NATS could not be asked. */
export type Told = (look: Look | undefined) => Effect.Effect<void>

/** Leases are written every second, also at rest. */
const cache = bucketStream("cache")
/** Nothing is stored in another bucket before LOG or WORK moves. Without leases, nobody works. */
const movedFirst: ReadonlyArray<string> = [...allStreams.map(({ name }) => name), cache]

/** Whether nothing was stored or removed between two looks. */
const isAtRest = (before: Look | undefined, after: Look | undefined): boolean =>
  before !== undefined &&
  after !== undefined &&
  before.streams.size === after.streams.size &&
  [...after.streams].every(([name, { state }]) => {
    const former = before.streams.get(name)?.state
    return name === cache || (former?.last_seq === state.last_seq && former.bytes === state.bytes)
  })

export class StreamWatch extends Context.Service<
  StreamWatch,
  {
    /** Looks at all streams now, and tells nobody. Shares a look that is under way. */
    readonly look: Effect.Effect<Look, NatsUnavailable>
    /**
     * Tells of the last look now, and of each look from now on. While `needsAll` is true, these are
     * at all streams, also at rest.
     */
    readonly tell: (told: Told, needsAll?: () => boolean) => Effect.Effect<void>
  }
>()("bellcast/nats/StreamWatch") {
  /** Looks first before the layer is made: eight requests in one write, 1 ms of CPU. */
  static readonly layer = Layer.effect(
    StreamWatch,
    Effect.gen(function* () {
      const { look, lookAt, latest } = makeLooks(yield* Nats, yield* Effect.scope)
      const tolds: Array<Told> = []
      const needs: Array<() => boolean> = []
      /** Looks in a row that found the streams at rest. */
      let atRest = 0
      const next = Effect.suspend(() => {
        // The first look at rest may come too early for those that take every other one.
        const isDue = atRest < 2 || atRest % restLooks === 0 || needs.some((each) => each())
        return isDue ? look : lookAt(movedFirst)
      })
      // Others log that the server is unavailable.
      const lookAndTell = Effect.gen(function* () {
        const before = latest()
        const first = yield* Effect.orElseSucceed(next, () => undefined)
        const isMoved = !isAtRest(before, first)
        atRest = isMoved ? 0 : atRest + 1
        const seen =
          isMoved && first?.isWhole === false
            ? yield* Effect.orElseSucceed(look, () => undefined)
            : first
        yield* Effect.forEach(tolds, (told) => told(seen), {
          concurrency: "unbounded",
          discard: true
        })
        yield* nextMultiple(isMoved ? everyMillis : restMillis)
      })
      yield* Effect.ignore(look)
      yield* nextMultiple(everyMillis).pipe(
        Effect.andThen(Effect.forever(lookAndTell)),
        Effect.forkScoped
      )
      return StreamWatch.of({
        look,
        tell: (told, needsAll = () => false) =>
          Effect.suspend(() => {
            tolds.push(told)
            needs.push(needsAll)
            return told(latest())
          })
      })
    })
  )
}

/** Looks at some streams, or all: in `scope`, as callers that share such a look may be stopped. */
const makeLooks = (nats: Nats["Service"], scope: Scope.Scope) => {
  let latest: Look | undefined
  let underWay: Fiber.Fiber<Look, NatsUnavailable> | undefined
  const lookAt = Effect.fnUntraced(
    function* (names: ReadonlyArray<string>) {
      const began = yield* monotonicMillis
      const found = yield* Effect.forEach(
        names,
        (name) =>
          Effect.map(streamInfo(nats, name, timeoutMillis), (info) => [name, info] as const),
        { concurrency: "unbounded" }
      )
      const isWhole = names === streamNames
      const there = new Map(isWhole ? [] : latest?.streams)
      for (const [name, info] of found)
        if (info === undefined) there.delete(name)
        else there.set(name, info)
      latest = { began, ended: yield* monotonicMillis, isWhole, streams: there }
      return latest
    },
    Effect.mapError(unavailable("state of the streams"))
  )
  const look = Effect.gen(function* () {
    const shared = underWay ?? (yield* Effect.forkIn(lookAt(streamNames), scope))
    underWay = shared
    const isOver = Effect.sync(() => {
      if (underWay === shared) underWay = undefined
    })
    return yield* Effect.ensuring(Fiber.join(shared), isOver)
  })
  return { look, lookAt, latest: () => latest }
}
