// Changes of states, resumes and lists of broadcasts need few requests to NATS, however much there
// is.
import { Effect, Layer } from "effect"
import { assert, it } from "vitest"
import { listBroadcasts } from "#broadcasts/list.ts"
import { States } from "#broadcasts/states.ts"
import { Settings } from "#config"
import { handleChange } from "#delivery/changes/changes.ts"
import { beginRun } from "#delivery/changes/waiting-jobs.ts"
import { Elapsed } from "#delivery/elapsed.ts"
import { startHeader } from "#domain/broadcast-start.ts"
import { startProgress } from "#domain/progress.ts"
import { provision } from "#nats/admin/provision.ts"
import { Nats } from "#nats/connection/connection.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { keys } from "#streams/buckets.ts"
import { filters, subjects } from "#streams/subjects.ts"
import { channelToken, originToken, shardsAt, type UserToken } from "#streams/tokens.ts"
import { useEmptyNats } from "../support/use-service.ts"

const shared = useEmptyNats()

const run = (program: Effect.Effect<void, unknown, Layer.Success<ReturnType<typeof natsLayer>>>) =>
  Effect.runPromise(
    Effect.andThen(provision(1), program).pipe(
      Effect.provide(natsLayer({ url: shared.nats.url, name: "test" }))
    )
  )

const channel = channelToken("news")
const floor = { subscriptions: 0, registrations: 0 }

it("reads for the line of a change only who published, and the counts", async () => {
  const program = Effect.gen(function* () {
    const log = yield* EventLog
    const { nc } = yield* Nats
    const subject = subjects.broadcast("shop", channel)
    const { seq: broadcast } = yield* log.append("log", { subject, type: "broadcast", body: {} })
    const at = new Date().toISOString()
    yield* log.append("log", {
      subject: subjects.state(broadcast),
      type: "broadcast.started",
      body: { broadcast, channel, run: 0, by: "schedule", at: Date.now(), schedule: { at } }
    })
    const stored = (yield* log.last("log", subjects.state(broadcast)))!
    const times = { acceptedAt: 1, expiresAt: 2, at: 1 }
    const counts = startProgress({ broadcast, depth: 0, shards: 1, floor, ...times }, 1)
    yield* (yield* Buckets).put("broadcasts", keys.broadcast(broadcast), counts, 0)
    // A start appends nothing.
    const requestsOf = Effect.fnUntraced(function* (deliveryCount: number) {
      const before = nc.stats().outMsgs
      yield* handleChange({ ...stored, message: stored.message, deliveryCount })
      return nc.stats().outMsgs - before
    })
    // The first read of a bucket also asks how many replicas it has.
    yield* (yield* Buckets).get("broadcasts", keys.broadcast(broadcast))
    // The line is written once.
    const others = yield* requestsOf(2)
    assert.isAtMost((yield* requestsOf(1)) - others, 2)
  })
  // No state is asked for: a start begins no run.
  const states = Layer.succeed(States, {} as States["Service"])
  await run(program.pipe(Effect.provide(Layer.mergeAll(Settings.layer, Elapsed.layer, states))))
})

const broadcast = 7
const shards = shardsAt(1)

const job = (shard: string) => ({
  ...{ broadcast, channel: "news", shard, floor, urgency: "normal" as const },
  ...{ acceptedAt: 1, expiresAt: Date.now() + 60_000 }
})

it("appends each job once, however often the broadcast was resumed", async () => {
  const program = Effect.gen(function* () {
    const { nc } = yield* Nats
    const log = yield* EventLog
    for (const shard of shards) {
      const subject = subjects.shard(broadcast, shard)
      yield* log.once("work", { subject, type: "shard", body: job(shard) })
    }
    const resume = Effect.fnUntraced(function* (run: number, isOvertaken = () => false) {
      const before = nc.stats().outMsgs
      yield* beginRun({ broadcast, run }, false, isOvertaken)
      return nc.stats().outMsgs - before
    })
    const runs = Effect.fnUntraced(function* () {
      const found = new Map<number, number>()
      yield* log.replay("work", [filters.shardsOf(broadcast)], ({ message }) => {
        if (message.type !== "shard") return
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
  await run(program)
})

it("asks about each retry once, however many runs it was appended in", async () => {
  const retries = 40
  const origin = originToken("push.example.com")
  const program = Effect.gen(function* () {
    const { nc } = yield* Nats
    const log = yield* EventLog
    for (let n = 0; n < retries; n++) {
      const [user, subscription] = [`user${n}` as UserToken, "a"]
      const { shard: _, floor: __, ...of } = job("0")
      const body = { ...of, user, subscription, generation: 1, firstWaitMillis: 60_000 }
      const subject = subjects.retry(origin, broadcast, user, subscription)
      const reason = "server-error" as const
      yield* log.once("work", {
        ...{ subject, type: "retry" },
        body: { ...body, attempts: 1, reason }
      })
    }
    const resume = Effect.fnUntraced(function* (run: number) {
      const before = nc.stats().outMsgs
      yield* beginRun({ broadcast, run }, true, () => false)
      return nc.stats().outMsgs - before
    })
    const first = yield* resume(1)
    for (const run of [2, 3, 4]) yield* resume(run)
    assert.isAtMost(yield* resume(5), first + 2)
    const runs: Array<number> = []
    yield* log.replay("work", [filters.retriesOf(broadcast)], ({ message }) => {
      if (message.type === "retry") runs.push(message.run ?? 0)
    })
    for (const run of [0, 1, 2, 3, 4, 5])
      assert.lengthOf(
        runs.filter((each) => each === run),
        retries
      )
  })
  await run(program)
})

const at = new Date(Date.now() + 3_600_000).toISOString()

/** Appends a broadcast that waits for its start. */
const addScheduled = Effect.gen(function* () {
  const log = yield* EventLog
  const { seq: broadcast } = yield* log.append("log", {
    subject: subjects.broadcast("test", channel),
    type: "broadcast",
    body: {},
    headers: { [startHeader]: at }
  })
  const body = { broadcast, channel, run: 0, by: "nats:test", at: 1, schedule: { at } }
  yield* log.once("log", {
    subject: subjects.state(broadcast),
    type: "broadcast.scheduled",
    body
  })
})

it("lists those that wait for their start by a few requests, however many they are", async () => {
  const program = Effect.gen(function* () {
    const { nc } = yield* Nats
    yield* Effect.all(
      Array.from({ length: 100 }, () => addScheduled),
      { concurrency: 16 }
    )
    const before = nc.stats().outMsgs
    const { rows } = yield* listBroadcasts({
      ...{ channel, limit: 100, behind: undefined, since: undefined, before: undefined },
      ...{ publisher: undefined, state: "scheduled" },
      isShown: () => Effect.succeed(true)
    })
    assert.lengthOf(rows, 100)
    assert.isBelow(nc.stats().outMsgs - before, 20)
  })
  await run(program)
})
