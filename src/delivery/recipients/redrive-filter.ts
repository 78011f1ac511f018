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
import type { Target } from "../push/target.ts"

/** Bytes of V8's heap (measured): the key of a push and its place in a set. */
const pushBytes = 210

/** The pushes of the last redrive. `usedIn`: sweeps of the share when they were used last. */
interface Known {
  readonly broadcast: number
  readonly pushes: ReadonlySet<string>
  usedIn: number
}

/**
 * Returns the targets that a job is for: all, unless it redrives. Ignores outcomes later than the
 * redrive.
 */
export const makeRedriveFilter = Effect.gen(function* () {
  const log = yield* EventLog
  // The shards of a redrive come one after the other. Without this cache each would read all
  // outcomes.
  const alone = yield* Semaphore.make(1)
  const share = (yield* Caches).share("redrives")
  let known: Known | undefined
  const keep = (next: Known | undefined) => {
    known = next
    share.bytes = (next?.pushes.size ?? 0) * pushBytes
  }
  share.join((since) => {
    if (known !== undefined && known.usedIn < since) keep(undefined)
  })

  const read = Effect.fnUntraced(function* (
    { acceptedAt, broadcast, channel }: ShardJob,
    redrives: number
  ) {
    if (known?.broadcast === broadcast) {
      known.usedIn = share.sweeps
      return known.pushes
    }
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
    keep({ broadcast, pushes, usedIn: share.sweeps })
    return pushes
  }, alone.withPermits(1))

  return Effect.fnUntraced(function* (job: ShardJob, targets: ReadonlyArray<Target>) {
    if (job.redrives === undefined) return targets
    const pushes = yield* read(job, job.redrives)
    return targets.filter(({ id, user }) => pushes.has(pushKey(user, id)))
  })
})
