// When a shard is read and sent: how many shards are read, and sent, at a time. Broadcasts share
// that equally.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import { makeRoom } from "#basics/bounded.ts"
import { Group } from "#children/group.ts"
import { FairSemaphore } from "#clock/fair-semaphore.ts"
import { Settings } from "#config"
import type { ShardJob } from "#domain/job.ts"
import type { Recipients } from "#domain/recipients.ts"
import type { NatsUnavailable } from "#nats/connection/errors.ts"
import { type Audience, Audiences } from "./audience.ts"

/**
 * Shards that are read, or were read and wait for those before them. All at once, the first would
 * be sent after the last is read.
 */
const readingMax = 8
/** The same of broadcasts with a rate, which wait for their turns only afterwards. */
const limitedReadingMax = 2

/** Most broadcasts whose first read is known. Beyond it, the oldest is dropped. */
const firstReadsMax = 1_000

interface Admitted {
  readonly found: Audience
  /** Ends the turn of the shard. */
  readonly endTurn: Effect.Effect<void>
}

/**
 * Returns a function that reads a shard and waits until it may be sent. `weightMax`: pushes of one
 * shard that are under way at once.
 */
export const makeAdmission = (audience: Audiences["Service"]["of"], weightMax: number) => {
  const roomOf = () => ({
    reading: new FairSemaphore<number>(readingMax),
    // Two large shards at a time, or many small ones. Many large ones would share the permits until
    // each outcome had a handful of results.
    sending: new FairSemaphore<number>(2 * weightMax)
  })
  // A broadcast of one shard does not wait for the shards of large ones.
  const single = roomOf()
  const several = roomOf()
  const limited = new FairSemaphore<number>(limitedReadingMax)
  const firstAlone = makeFirstAlone()
  return (job: ShardJob, to: Recipients): Effect.Effect<Admitted, NatsUnavailable> => {
    const { broadcast, rate, shard } = job
    if (rate !== undefined) {
      const read = Effect.map(audience(job, to), (found) => ({ found, endTurn: Effect.void }))
      return limited.withPermit(broadcast, read)
    }
    const { reading, sending } = shard === "all" ? single : several
    const read = Effect.gen(function* () {
      const found = yield* shard === "all"
        ? audience(job, to)
        : firstAlone(broadcast, audience(job, to))
      const weight = Math.min(Math.max(1, found.targets.length), weightMax)
      yield* sending.take(broadcast, weight)
      return { found, endTurn: sending.release(broadcast, weight) }
    })
    return reading.withPermit(broadcast, read)
  }
}

export class Admission extends Context.Service<
  Admission,
  {
    /** Reads the audience of a shard, and waits until the shard may be sent. */
    readonly admitted: ReturnType<typeof makeAdmission>
  }
>()("bellcast/delivery/Admission") {
  static readonly layer = Layer.effect(
    Admission,
    Effect.gen(function* () {
      const audiences = yield* Audiences
      const { unrecordedPushesMax } = yield* Settings
      return { admitted: makeAdmission(audiences.of, (yield* Group).part(unrecordedPushesMax)) }
    })
  )
}

/**
 * Returns a function that runs the first read of a broadcast before its others. If they ran at the
 * same time, the first would end as late as the others, and no push would be sent until then.
 */
const makeFirstAlone = () => {
  const firsts = new Map<number, Latch.Latch>()
  return <A, E>(broadcast: number, read: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.suspend(() => {
      const first = firsts.get(broadcast)
      if (first !== undefined) return Effect.andThen(first.await, read)
      const isOver = Latch.makeUnsafe()
      makeRoom(firsts, firstReadsMax)
      firsts.set(broadcast, isOver)
      return Effect.ensuring(read, isOver.open)
    })
}
