// Notices that LOG or WORK was replaced while processes run: their caches, leases and checkpoints
// belong to the former stream.
import { Effect } from "effect"
import { streams } from "#streams/index.ts"
import { Nats } from "../connection/connection.ts"
import { infoOf } from "../follower/follower-check.ts"
import { type Look, replacedFault } from "../follower/marks.ts"

const everyMillis = 2_000
const timeoutMillis = 2_000
/** One look is no proof while a server starts. */
const looksMin = 2
/**
 * In a cluster, a leader that was cut off answers for 10 s after the others have elected a new one,
 * and its stream is shorter.
 */
const looksInCluster = 8

interface Watched {
  before: Look | undefined
  /** How many looks in a row found another stream. */
  doubts: number
}

/** Returns the reason once it is certain that a stream is another one. */
const lookAt = Effect.fnUntraced(function* (stream: string, watched: Watched) {
  const info = yield* infoOf(yield* Nats, stream, timeoutMillis)
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
})

/** Looks at LOG and WORK every two seconds. Returns why one is not the stream that it was. */
export const untilReplaced = Effect.gen(function* () {
  const watched = new Map(
    Object.values(streams).map(({ name }): [string, Watched] => [
      name,
      { before: undefined, doubts: 0 }
    ])
  )
  while (true) {
    for (const [stream, state] of watched) {
      // Others log that NATS is unavailable.
      const found = yield* Effect.orElseSucceed(lookAt(stream, state), () => undefined)
      if (found !== undefined) return found
    }
    yield* Effect.sleep(everyMillis)
  }
})
