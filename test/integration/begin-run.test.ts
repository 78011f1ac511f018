// The work of a resume: it must not grow with the resumes before.
import { Effect } from "effect"
import { assert, it } from "vitest"
import { beginRun } from "#delivery/changes/begin-run.ts"
import { provision } from "#nats/admin/provision.ts"
import { Nats } from "#nats/connection/connection.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { filters, subjects } from "#streams/subjects.ts"
import { originToken, shardsAt, type UserToken } from "#streams/tokens.ts"
import { startNats } from "../support/nats.ts"

const broadcast = 7
const shards = shardsAt(1)
const floor = { subscriptions: 0, registrations: 0 }

const job = (shard: string) => ({
  ...{ broadcast, channel: "news", shard, floor, urgency: "normal" as const },
  ...{ acceptedAt: 1, expiresAt: Date.now() + 60_000 }
})

it("appends each job once, however often the broadcast was resumed", async () => {
  await using nats = await startNats()
  const program = Effect.gen(function* () {
    yield* provision(1)
    const { nc } = yield* Nats
    const log = yield* EventLog
    for (const shard of shards) {
      const subject = subjects.shard(broadcast, shard)
      yield* log.once("work", { subject, type: "shard/1", body: job(shard) })
    }
    const resume = Effect.fnUntraced(function* (run: number, isOvertaken = () => false) {
      const before = nc.stats().outMsgs
      yield* beginRun(log, { broadcast, run }, false, isOvertaken)
      return nc.stats().outMsgs - before
    })
    const runs = Effect.fnUntraced(function* () {
      const found = new Map<number, number>()
      yield* log.replay("work", [filters.shardsOf(broadcast)], ({ message }) => {
        if (message.type !== "shard/1") return
        found.set(message.run ?? 0, (found.get(message.run ?? 0) ?? 0) + 1)
      })
      return [...found]
    })
    const first = yield* resume(1)
    for (const run of [2, 3, 4]) yield* resume(run)
    const fifth = yield* resume(5)
    assert.isAtMost(fifth, first + 2)
    assert.deepEqual(
      yield* runs(),
      [0, 1, 2, 3, 4, 5].map((run) => [run, 16])
    )
    // Looked at again, everything is there.
    assert.isBelow(yield* resume(5), 16)
    // Overtaken by a later change, the rest is useless.
    let left = 3
    yield* resume(6, () => left-- <= 0)
    assert.deepEqual((yield* runs()).at(-1), [6, 3])
    yield* resume(7)
    assert.deepEqual((yield* runs()).at(-1), [7, 16])
  })
  const services = natsLayer({ url: nats.url, name: "test" })
  await Effect.runPromise(program.pipe(Effect.provide(services)))
})

it("asks about each retry once, however many runs it was appended in", async () => {
  await using nats = await startNats()
  const retries = 40
  const origin = originToken("push.example.com")
  const program = Effect.gen(function* () {
    yield* provision(1)
    const { nc } = yield* Nats
    const log = yield* EventLog
    for (let n = 0; n < retries; n++) {
      const [user, subscription] = [`user${n}` as UserToken, "a"]
      const { shard: _, floor: __, ...of } = job("0")
      const body = { ...of, user, subscription, generation: 1, firstWaitMillis: 60_000 }
      const subject = subjects.retry(origin, broadcast, user, subscription)
      const reason = "server-error" as const
      yield* log.once("work", {
        ...{ subject, type: "retry/1" },
        body: { ...body, attempts: 1, reason }
      })
    }
    const resume = Effect.fnUntraced(function* (run: number) {
      const before = nc.stats().outMsgs
      yield* beginRun(log, { broadcast, run }, true, () => false)
      return nc.stats().outMsgs - before
    })
    const first = yield* resume(1)
    for (const run of [2, 3, 4]) yield* resume(run)
    assert.isAtMost(yield* resume(5), first + 2)
    const runs: Array<number> = []
    yield* log.replay("work", [filters.retriesOf(broadcast)], ({ message }) => {
      if (message.type === "retry/1") runs.push(message.run ?? 0)
    })
    for (const run of [0, 1, 2, 3, 4, 5])
      assert.lengthOf(
        runs.filter((each) => each === run),
        retries
      )
  })
  const services = natsLayer({ url: nats.url, name: "test" })
  await Effect.runPromise(program.pipe(Effect.provide(services)))
})
