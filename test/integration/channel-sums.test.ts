// The sum that the projector stores before final counts go from LOG: what it reads for that, and
// what it leaves where another projector was faster.
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { provision } from "#nats/admin/provision.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { keepSums, sumIn } from "#projection/channel-sums.ts"
import { filters, subjects } from "#streams/subjects.ts"
import { channelToken } from "#streams/tokens.ts"
import { userOf } from "../support/history-commands.ts"
import { startNats } from "../support/nats.ts"

const channel = channelToken("news")
const since = 1
const upTo = (seq: number) => [{ channel, since, upTo: seq }]

/** Begins the channel, and appends final counts of broadcasts that delivered 1, 2 and 4 pushes. */
const finish = Effect.gen(function* () {
  const { append } = yield* EventLog
  const subject = subjects.registration(channel, userOf(1))
  yield* append("log", { subject, type: "registration.put", body: { user: "user 1", at: 1 } })
  const ends = yield* Effect.forEach([1, 2, 4], (delivered) => {
    const broadcast = 100 + delivered
    const body = {
      ...({ v: 1, broadcast, accepted: delivered, delivered, finished: true } as const),
      ...{ retrying: 0, gone: 0, dead: 0, expired: 0, shards: 1, shardsDone: 1 },
      ...{ acceptedAt: 1, expiresAt: 2, lastModified: delivered, seq: delivered }
    }
    const subject = subjects.finished(channel, broadcast)
    const appended = append("log", { subject, type: "broadcast.finished", body })
    return Effect.map(appended, ({ seq }) => seq)
  })
  return ends as [number, number, number]
})

/** The sums that LOG has of the channel. */
const sums = Effect.gen(function* () {
  const { following } = yield* EventLog
  const found = yield* following("log", subjects.summed(channel), { from: 1, limit: 9 })
  return found.map((each) => sumIn(each)?.sum)
})

const sumOf = (pushes: number, last: number, upTo: number) => ({
  ...{ since, upTo, pushes, seq: last, lastModified: last }
})

const onServer = async <A, E>(program: Effect.Effect<A, E, EventLog>) => {
  await using nats = await startNats({ syncAlways: false })
  await Effect.andThen(provision(1), program).pipe(
    Effect.scoped,
    Effect.provide(natsLayer({ url: nats.url, name: "test" })),
    Effect.runPromise
  )
}

describe("a sum of final counts", () => {
  it("adds those behind the former sum, takes its place, and reads no others", () =>
    onServer(
      Effect.gen(function* () {
        const log = yield* EventLog
        const [first, second, third] = yield* finish
        assert.isTrue((yield* keepSums({ log }, upTo(second)))(upTo(first)[0]!))
        assert.deepEqual(yield* sums, [sumOf(3, 2, second)])
        yield* log.remove(first)
        const read: Array<number> = []
        const following: typeof log.following = (stream, filter, bounds) => {
          if (filter === filters.finishedIn(channel)) read.push(bounds.from)
          return log.following(stream, filter, bounds)
        }
        yield* keepSums({ log: { ...log, following } }, upTo(third))
        assert.deepEqual(yield* sums, [sumOf(7, 4, third)])
        yield* keepSums({ log: { ...log, following } }, upTo(second))
        assert.deepEqual(read, [second + 1], "no final counts for a sum that has all")
      })
    ))

  it("is that of one projector where two store one, and the other stores it later", () =>
    onServer(
      Effect.gen(function* () {
        const log = yield* EventLog
        const [first, second, third] = yield* finish
        yield* keepSums({ log }, upTo(first))
        const append = ((stream, message) =>
          keepSums({ log }, upTo(second)).pipe(
            Effect.andThen(log.remove(second)),
            Effect.andThen(log.append(stream, message))
          )) as typeof log.append
        const late = keepSums({ log: { ...log, append } }, upTo(third))
        const error = yield* Effect.flip(late)
        assert.equal(error._tag, "AppendConflict")
        assert.deepEqual(yield* sums, [sumOf(3, 2, second)])
        yield* keepSums({ log }, upTo(third))
        assert.deepEqual(yield* sums, [sumOf(7, 4, third)])
      })
    ))
})
