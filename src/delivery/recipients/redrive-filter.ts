// The audience of a redrive: the targets whose push of the earlier broadcast ended as dead or
// expired.

import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { ShardJob } from "#domain/job.ts"
import { isUndelivered, pushKey } from "#domain/outcome.ts"
import { Caches } from "#memory/cache-memory.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { filters } from "#streams/subjects.ts"
import type { ChannelToken } from "#streams/tokens.ts"
import type { Target } from "../attempt.ts"

/** Bytes of V8's heap (measured): the key of a push and its place in a set. */
const pushBytes = 210

/** Redrives whose pushes are kept. Their shards take turns. */
const knownMax = 4

/** The pushes of a redrive. `usedIn`: sweeps of the share when they were used last. */
interface Known {
  readonly pushes: ReadonlySet<string>
  readonly usedIn: number
}

/**
 * Returns the targets that a job is for: all, unless it redrives. Ignores outcomes later than the
 * redrive.
 */
export const makeRedriveFilter = Effect.gen(function* () {
  const log = yield* EventLog
  // Without this cache each shard of a redrive would read all outcomes.
  const alone = yield* Semaphore.make(1)
  const share = (yield* Caches).share("redrives")
  /** By broadcast, in the order of their last use. */
  const known = new Map<number, Known>()
  const drop = (broadcast: number) => {
    share.bytes -= (known.get(broadcast)?.pushes.size ?? 0) * pushBytes
    known.delete(broadcast)
  }
  const keep = (broadcast: number, pushes: ReadonlySet<string>) => {
    drop(broadcast)
    for (const oldest of known.keys()) if (known.size >= knownMax) drop(oldest)
    known.set(broadcast, { pushes, usedIn: share.sweeps })
    share.bytes += pushes.size * pushBytes
    return pushes
  }
  share.join((since) => {
    for (const [broadcast, { usedIn }] of known) if (usedIn < since) drop(broadcast)
  })

  const read = Effect.fnUntraced(function* (
    { acceptedAt, broadcast, channel }: ShardJob,
    redrives: number
  ) {
    const found = known.get(broadcast)
    if (found !== undefined) return keep(broadcast, found.pushes)
    const pushes = new Set<string>()
    yield* log.replay(
      "work",
      [filters.outcomesIn(channel as ChannelToken, redrives)],
      ({ at, message }) =>
        Effect.sync(() => {
          if (message.type !== "outcome/1" || at > acceptedAt) return
          for (const { fate, subscription, user } of message.results)
            if (isUndelivered(fate)) pushes.add(pushKey(user, subscription))
        })
    )
    return keep(broadcast, pushes)
  }, alone.withPermits(1))

  return Effect.fnUntraced(function* (job: ShardJob, targets: ReadonlyArray<Target>) {
    if (job.redrives === undefined) return targets
    const pushes = yield* read(job, job.redrives)
    return targets.filter(({ id, user }) => pushes.has(pushKey(user, id)))
  })
})
