// The names of the channels that somebody joined, in order, and which channels a grant names for a
// principal: an index in memory, which follows the buckets. NATS has none for the beginning of a
// key. Keys that spell a name one byte a token would be one, but nats-server 2.15 looks at all that
// a wildcard matches: among 100,000 names a page took 240 ms there, and it needed 30 MB more. Here
// a page takes as long as among 1,000, 8 ms, and the gateway needs 38 MB more (measured, busy
// cores).
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import { runForever } from "#nats/connection/again.ts"
import { type NatsUnavailable, unavailable } from "#nats/connection/errors.ts"
import { followEntries } from "#nats/kv/entries.ts"
import { channelOfBegin, channelOfPublishers, keys } from "#streams/buckets.ts"
import { decodeToken } from "#streams/tokens.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"

/**
 * The first request waits for the reading of the bucket: 100,000 names took 3.2 s on two busy cores
 * (measured). Later ones find what it has read.
 */
const readMillis = 5_000
/**
 * A channel that is forgotten leaves its name here, as NATS announces no removal. So the names are
 * read anew after as many new ones as there were, or this many.
 */
const addedMin = 10_000

export class ChannelNames extends Context.Service<
  ChannelNames,
  {
    /** The names of channels that somebody joined, and of some that were forgotten since. */
    readonly joined: Effect.Effect<Names, NatsUnavailable>
    /** The channels on which grants let these principals publish: a moment late. */
    readonly grantedTo: (
      principals: ReadonlyArray<string>
    ) => Effect.Effect<ReadonlyArray<string>, NatsUnavailable>
  }
>()("bellcast/gateway/ChannelNames") {
  /** Each part is read when the first request needs it, and follows its bucket from then on. */
  static readonly layer = Layer.effect(
    ChannelNames,
    Effect.gen(function* () {
      const names = yield* followed("names of channels", followNames)
      const grants = yield* followed("grants of channels", followGrants)
      return ChannelNames.of({
        joined: names,
        grantedTo: (principals) =>
          Effect.map(grants, (found) => [
            ...new Set(principals.flatMap((each) => [...(found.get(each) ?? [])]))
          ])
      })
    })
  )
}

/**
 * Returns what `follow` passes to `complete`. The first caller starts `follow`, which goes on until
 * the scope closes, and begins anew after each end. Meanwhile callers get what it made before.
 */
const followed = Effect.fnUntraced(function* <A, E, R>(
  what: string,
  follow: (complete: (made: A) => void) => Effect.Effect<void, E, R>
) {
  const [wanted, made] = [Latch.makeUnsafe(), Latch.makeUnsafe()]
  let current: A | undefined
  const complete = (next: A) => {
    current = next
    made.openUnsafe()
  }
  const warn = makeRateLimitedLog(`the ${what} cannot be followed`)
  const run = runForever(follow(complete), "250 millis", warn)
  yield* Effect.forkScoped(Effect.andThen(wanted.await, run))
  return Effect.suspend(() => {
    wanted.openUnsafe()
    return Effect.map(made.await, () => current as A)
  }).pipe(
    Effect.timeoutOrElse({
      duration: readMillis,
      orElse: () => unavailable(`read the ${what}`)(new Error("this takes too long"))
    })
  )
})

const followNames = Effect.fnUntraced(function* (complete: (made: Names) => void) {
  const tooMany = Latch.makeUnsafe()
  const read: Array<string> = []
  let names: Names | undefined
  let addedMax = 0
  const see = (key: string) => {
    const name = decodeToken(channelOfBegin(key))
    if (name === undefined) return
    if (names === undefined) return void read.push(name)
    if (names.add(name)) addedMax -= 1
    if (addedMax < 0) tooMany.openUnsafe()
  }
  const follow = followEntries("channels", keys.channelBegins, see, () => {
    names = new Names(read)
    addedMax = Math.max(read.length, addedMin)
    complete(names)
  })
  yield* Effect.raceFirst(follow, tooMany.await)
})

const followGrants = Effect.fnUntraced(function* (
  complete: (made: ReadonlyMap<string, ReadonlySet<string>>) => void
) {
  const granted = new Map<string, Set<string>>()
  const known = new Map<string, ReadonlyArray<string>>()
  return yield* followEntries(
    "permissions",
    keys.allPublishers,
    (key, { principals }) => {
      const name = decodeToken(channelOfPublishers(key))
      if (name === undefined) return
      for (const each of known.get(name) ?? []) granted.get(each)?.delete(name)
      known.set(name, principals)
      for (const each of principals) {
        const channels = granted.get(each) ?? new Set()
        granted.set(each, channels.add(name))
      }
    },
    () => complete(granted)
  )
})

/** The text by which names are ordered and found: in any case, so "New" finds "news". */
export const folded = (name: string): string => name.toUpperCase()

/** The order of names: that of their folded texts, then their own. */
export const compareNames = (a: string, b: string): number =>
  compareTexts(folded(a), folded(b)) || compareTexts(a, b)

const compareTexts = (a: string, b: string): number => (a < b ? -1 : Number(a > b))

/** Places of names in order, from the first to before the last. */
interface Range {
  readonly from: number
  readonly to: number
}

/** Names in order. */
export class Names {
  readonly #sorted: Array<string>

  /** Halts the process for 0.3 s of 100,000 names, once (measured). */
  constructor(names: ReadonlyArray<string>) {
    // Folds each name once.
    const pairs = [...new Set(names)].map((name) => [folded(name), name] as const)
    pairs.sort(([a, one], [b, other]) => compareTexts(a, b) || compareTexts(one, other))
    this.#sorted = pairs.map(([, name]) => name)
  }

  /** Whether the name is new. */
  add(name: string): boolean {
    const place = this.#place((each) => compareNames(each, name) < 0)
    if (this.#sorted[place] === name) return false
    this.#sorted.splice(place, 0, name)
    return true
  }

  /** The names behind another one, or all, that begin with each of these texts in any case. */
  range(behind: string | undefined, ...prefixes: ReadonlyArray<string>): Range {
    let from = behind === undefined ? 0 : this.#place((each) => compareNames(each, behind) <= 0)
    let to = this.#sorted.length
    for (const prefix of prefixes.map(folded)) {
      from = Math.max(
        from,
        this.#place((each) => folded(each) < prefix)
      )
      const isBefore = (text: string) => text < prefix || text.startsWith(prefix)
      to = Math.min(
        to,
        this.#place((each) => isBefore(folded(each)))
      )
    }
    return { from, to }
  }

  /** The names in some ranges, in order, each once. */
  *within(ranges: ReadonlyArray<Range>): Generator<string> {
    let at = 0
    for (const { from, to } of ranges.toSorted((a, b) => a.from - b.from))
      for (at = Math.max(at, from); at < to; at++) yield this.#sorted[at]!
  }

  /** The first place whose name is not before, by a function that is true for the first names. */
  #place(isBefore: (name: string) => boolean): number {
    let [low, high] = [0, this.#sorted.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (isBefore(this.#sorted[middle]!)) low = middle + 1
      else high = middle
    }
    return low
  }
}
