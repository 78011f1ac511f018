// Notices that LOG or WORK was replaced while processes run: their caches, leases and checkpoints
// belong to the former stream.
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { streams } from "#streams/index.ts"
import { type DatedSight, replacedFault } from "../follower/checkpoint.ts"
import { type Look, StreamWatch } from "./streams.ts"

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

/** Waits until LOG or WORK is not the stream that it was, and returns why. */
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
