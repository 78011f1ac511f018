// Asks the server how all streams are, those behind buckets too: once a second while they change,
// at rest every three seconds. Each look is told to those that watch space, the clock and
// consumers, and judged here: whether LOG or WORK was replaced, and how many copies of each stream
// there are.
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { monotonicMillis, nextMultiple } from "#clock/clocks.ts"
import { makeSingleFlight } from "#clock/single-flight.ts"
import { bucketStream, projections } from "#streams/buckets.ts"
import { storedForm, streamNames, streams } from "#streams/index.ts"
import { showCopies } from "#telemetry/nats-metrics.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { Nats } from "../connection/connection.ts"
import { type NatsUnavailable, unavailable } from "../connection/errors.ts"
import { type DatedSight, replacedFault } from "../follower/checkpoint.ts"
import { formKey, isLaterForm, makingKey, type StreamInfo, streamInfo } from "../stream/info.ts"

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
type Told = (look: Look | undefined) => Effect.Effect<void>

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
      // A heartbeat looks twice at once.
      const looks = yield* makeSingleFlight<"all", Look, NatsUnavailable>()
      const look = looks.join(
        "all",
        Effect.tap(lookAtAll(nats), (seen) =>
          Effect.sync(() => {
            latest = seen
          })
        )
      )
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

/** One look is no proof while a server starts. */
const looksMin = 3
/**
 * In a cluster, a leader that was cut off answers for 10 s after the others have elected a new one,
 * and its stream is shorter.
 */
const looksInCluster = 16

interface Watched {
  before: DatedSight | undefined
  /** How many looks in a row found another stream. */
  doubts: number
}

/** Returns the reason once it is certain that a stream is another one. */
const judge = (stream: string, watched: Watched, look: Look): string | undefined => {
  const info = look.streams.get(stream)
  // A deleted stream may come back from a backup: it is compared then.
  if (info === undefined) return undefined
  const now = { stream, created: info.created, lastSeq: info.state.last_seq }
  const fault = watched.before && replacedFault(watched.before, now)
  if (fault === undefined) {
    watched.before = now
    watched.doubts = 0
    return undefined
  }
  watched.doubts += 1
  const isCluster = info.config.num_replicas > 1
  return watched.doubts >= (isCluster ? looksInCluster : looksMin) ? fault : undefined
}

/**
 * Waits until LOG or WORK is not the stream that it was, and returns why: caches, leases and
 * checkpoints of the processes belong to the former stream.
 */
export const untilReplaced = Effect.gen(function* () {
  const watch = yield* StreamWatch
  const replaced = yield* Deferred.make<string>()
  const watched = Object.values(streams).map(({ name }) => {
    const state: Watched = { before: undefined, doubts: 0 }
    return (look: Look) => judge(name, state, look)
  })
  const told = (look: Look | undefined) => {
    const faults = look === undefined ? [] : watched.flatMap((judged) => judged(look) ?? [])
    return faults.length === 0 ? Effect.void : Deferred.succeed(replaced, faults[0]!)
  }
  yield* watch.tell(told)
  return yield* Deferred.await(replaced)
})

/** Why the buckets are not those that this version reads; undefined: they are, or are missing. */
const formFault = (look: Look): { readonly why: string; readonly isLater: boolean } | undefined => {
  const own = storedForm.buckets
  const making = look.streams.get(streams.log.name)?.config.metadata?.[makingKey]
  const found = projections.map((bucket) => {
    const name = bucketStream(bucket)
    return [`${name} is stored`, look.streams.get(name)?.config.metadata?.[formKey]] as const
  })
  for (const [what, form] of [["the buckets are made again", making] as const, ...found])
    if (form !== undefined && form !== own)
      return {
        why: `${what} in form ${form} now; this version reads form ${own}`,
        isLater: isLaterForm(form, own)
      }
  return undefined
}

/**
 * Waits until another version has begun to make the buckets again in its form, and returns why this
 * process must end. A leader that was cut off may show a former form, but no later one.
 */
export const untilOtherForm = Effect.gen(function* () {
  const watch = yield* StreamWatch
  const changed = yield* Deferred.make<string>()
  let doubts = 0
  yield* watch.tell((look) => {
    if (look === undefined) return Effect.void
    const fault = formFault(look)
    doubts = fault === undefined ? 0 : doubts + 1
    const replicas = look.streams.get(streams.log.name)?.config.num_replicas ?? 1
    const isCertain =
      fault?.isLater === true || doubts >= (replicas > 1 ? looksInCluster : looksMin)
    return fault !== undefined && isCertain ? Deferred.succeed(changed, fault.why) : Effect.void
  })
  return yield* Deferred.await(changed)
})

/** Under load a copy is behind for moments: one that was current within this time counts. */
const currentMillis = 30_000

interface Copies {
  readonly stream: string
  /** Copies that have, or had within the last 30 s, all that is stored. */
  readonly current: number
  /** Copies that the stream should have. */
  readonly wanted: number
  /** The servers whose copies are not current, by their names. */
  readonly behind: ReadonlyArray<string>
}

/** When each copy was current last, by stream and server: by the monotonic clock. */
export type LastCurrent = Map<string, number>

const copiesOfStream = (
  stream: string,
  { cluster, config }: StreamInfo,
  now: number,
  last: LastCurrent
): Copies => {
  const wanted = config.num_replicas
  if (cluster === undefined) return { stream, current: 1, wanted, behind: [] }
  const behind: Array<string> = []
  for (const { current, name, offline = false } of cluster.replicas ?? []) {
    const key = `${stream} ${name}`
    if (current && !offline) last.set(key, now)
    else if (now - (last.get(key) ?? Number.NEGATIVE_INFINITY) > currentMillis) behind.push(name)
  }
  const peers = (cluster.replicas ?? []).length - behind.length
  return { stream, current: (cluster.leader ? 1 : 0) + peers, wanted, behind }
}

/** The copies of every stream, by a look. Updates `last`. */
export const copiesOf = (look: Look, last: LastCurrent): ReadonlyArray<Copies> =>
  [...look.streams].map(([stream, info]) => copiesOfStream(stream, info, look.ended, last))

/**
 * Shows the copies as metrics, and logs when some are lost and when all are current again.
 * JetStream goes on with two of three copies and says nothing, so that the next failure would be
 * the end: a server that is away or whose disk is full, or a copy that does not catch up.
 */
export const copiesLayer = Layer.effectDiscard(
  Effect.gen(function* () {
    const watch = yield* StreamWatch
    const last: LastCurrent = new Map()
    const warn = makeRateLimitedLog(
      "streams have fewer current copies than they should: a server of NATS is away, its disk is " +
        "full, or it does not catch up. With one more such server NATS stores nothing"
    )
    let wasShort = false
    const told = Effect.fnUntraced(function* (look: Look) {
      const copies = copiesOf(look, last)
      showCopies(copies)
      const short = copies.filter(({ current, wanted }) => current < wanted)
      if (short.length > 0) {
        const servers = [...new Set(short.flatMap(({ behind }) => behind))].join(",")
        const log = short.find(({ stream }) => stream === streams.log.name) ?? short[0]!
        yield* warn({ streams: short.length, servers, copies: log.current, wanted: log.wanted })
      } else if (wasShort) yield* Effect.logInfo("streams have all their copies again")
      wasShort = short.length > 0
    })
    yield* watch.tell((look) => (look === undefined ? Effect.void : told(look)))
  })
)
