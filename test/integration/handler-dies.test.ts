// A message on which the handler dies each time is given up after five deaths, in this process, or
// kept where no end can be recorded; one that it cannot handle because NATS is away is neither.
import { Effect, Layer, Logger } from "effect"
import { assert, it } from "vitest"
import { States } from "#broadcasts/states.ts"
import { giveUpRetry } from "#delivery/jobs/retry.ts"
import { keepShard } from "#delivery/jobs/shard.ts"
import type { RetryJob, ShardJob } from "#domain/job.ts"
import { provision } from "#nats/admin/provision.ts"
import { unavailable } from "#nats/connection/errors.ts"
import { natsLayer } from "#nats/layer.ts"
import { Consumers, done, keep, never } from "#nats/stream/consumer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { channelToken, originToken, type UserToken } from "#streams/tokens.ts"
import { until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"

const job: RetryJob = {
  ...{ broadcast: 1, channel: "news", acceptedAt: 1, expiresAt: 4_000_000_000_000, attempts: 2 },
  ...{ urgency: "normal" as const, user: "A".repeat(22), subscription: "a", generation: 9 },
  ...{ firstWaitMillis: 0, reason: "timeout" as const, service: "fcm" }
}

it("a retry on which the worker dies ends as dead, with a dead letter", async () => {
  await using nats = await startNats({ syncAlways: false })
  await using admin = await connectAdmin(nats.url)
  const place = `news.1.push.${job.user}.a`
  const program = Effect.gen(function* () {
    yield* provision(1)
    const log = yield* EventLog
    const subject = subjects.retry(originToken("push.example"), 1, job.user as UserToken, "a")
    yield* log.append("work", { subject, type: "retry", body: job })
    const consumers = yield* Consumers
    const dies = () => Effect.die(new Error("a defect"))
    yield* Effect.forkChild(consumers.each("work", "retry", 1, dies, giveUpRetry))
    const body = (last_by_subj: string) =>
      Effect.map(log.last("work", last_by_subj), (found) => found?.message)
    yield* Effect.promise(() =>
      until(
        () => admin.jsm.consumers.info("BELLCAST_WORK", "retry"),
        ({ num_ack_pending, num_pending }) => num_ack_pending + num_pending === 0
      )
    )
    const outcome = yield* body(`bellcast.outcome.${place}`)
    assert.deepInclude(outcome, { type: "outcome", broadcast: 1, pushes: 0, final: true })
    const [result] = outcome?.type === "outcome" ? outcome.results : []
    const end = { fate: "dead", reason: "internal", attempt: 2, service: "fcm" } as const
    assert.deepInclude(result, { ...end, former: { reason: "timeout", attempt: 2 } })
    const letter = yield* body(`bellcast.dead.news.1.${job.user}.a`)
    assert.deepInclude(letter, { type: "dead", generation: 9, reason: "internal", attempts: 2 })
  })
  const services = Layer.merge(natsLayer({ url: nats.url, name: "test" }), Logger.layer([]))
  await Effect.runPromise(program.pipe(Effect.provide(services)))
})

it("a message on which the handler dies is given up with a reason, and stops nothing", async () => {
  await using nats = await startNats({ syncAlways: false })
  await using admin = await connectAdmin(nats.url)
  const tries = new Map<string, number>()
  const givenUp: Array<readonly [seq: number, reason: string]> = []
  const written: Array<string> = []
  const info = () => admin.jsm.consumers.info("BELLCAST_LOG", "planner")
  const program = Effect.gen(function* () {
    yield* provision(1)
    const log = yield* EventLog
    const append = (source: string) =>
      log.append("log", {
        subject: subjects.broadcast(source, channelToken("news")),
        type: "broadcast",
        body: {}
      })
    const { seq } = yield* append("dies")
    yield* append("fails")
    const consumers = yield* Consumers
    yield* Effect.forkChild(
      consumers.each(
        ...(["log", "planner", 2] as const),
        ({ subject }) => {
          const source = subject.split(".")[3]!
          tries.set(source, (tries.get(source) ?? 0) + 1)
          if (source === "dies") throw new Error("a defect")
          return source === "fails" && tries.get(source)! <= 6
            ? Effect.fail(unavailable("test")(new Error("NATS is away")))
            : Effect.succeed(done)
        },
        ({ seq }, reason) => {
          givenUp.push([seq, reason])
          return Effect.succeed(never(reason))
        }
      )
    )
    yield* append("next")
    yield* Effect.promise(() =>
      until(info, ({ num_ack_pending, num_pending }) => num_ack_pending + num_pending === 0)
    )
    assert.deepEqual(Object.fromEntries(tries), { dies: 5, fails: 7, next: 1 })
    assert.deepEqual(givenUp, [
      [seq, "the service failed on this message 5 times: its log says why"]
    ])
    const lines = written.filter((line) => line.includes("is given up"))
    assert.lengthOf(lines, 1)
  })
  const logger = Logger.make(({ message }) => void written.push(String(message)))
  const services = Layer.merge(natsLayer({ url: nats.url, name: "test" }), Logger.layer([logger]))
  await Effect.runPromise(program.pipe(Effect.provide(services)))
})

const { attempts: _, user: __, subscription: ___, ...ref } = job
const floor = { registrations: 0, subscriptions: 0 }
const shardJob: ShardJob = { ...ref, floor, shard: "0", rate: 1, stride: 1 }
const cancelled = { broadcast: 1, channel: "news", run: 0, by: "test", at: 1 }

it("a message is kept where nothing records its end, and ends when its handler succeeds", {
  timeout: 120_000
}, async () => {
  await using nats = await startNats({ syncAlways: false })
  await using admin = await connectAdmin(nats.url)
  const tries = { limited: 0, next: 0, retry: 0, states: 0 }
  const written: Array<readonly [text: string, level: string]> = []
  const program = Effect.gen(function* () {
    yield* provision(1)
    const log = yield* EventLog
    yield* log.append("work", {
      ...{ subject: subjects.limitedShard(1, "0"), type: "shard", body: shardJob }
    })
    const retry = subjects.retry(originToken("push.example"), 1, job.user as UserToken, "a")
    yield* log.append("work", { subject: retry, type: "retry", body: job })
    yield* log.append("log", {
      ...{ subject: subjects.state(1), type: "broadcast.cancelled", body: cancelled }
    })
    const consumers = yield* Consumers
    /** Dies until the message would have been given up. */
    const handle = (name: keyof typeof tries) => () =>
      Effect.suspend(() =>
        ++tries[name] <= 5 ? Effect.die(new Error("a defect")) : Effect.succeed(done)
      )
    const shard = handle("limited")
    const next = handle("next")
    const isFirst = (subject: string) => subject === subjects.limitedShard(1, "0")
    const states = Layer.mock(States, {
      ...{ orderOf: () => "send", runOf: () => 0, isFull: () => false }
    })
    for (const each of [
      consumers.each(
        ...(["work", "limited", 1] as const),
        ({ subject }) => (isFirst(subject) ? shard() : next()),
        (delivery) => keepShard(delivery).pipe(Effect.provide(states))
      ),
      consumers.each("work", "retry", 1, handle("retry"), () => Effect.die("a defect, too")),
      consumers.each("log", "states", 1, handle("states"), () => Effect.succeed(keep))
    ])
      yield* Effect.forkChild(each)
    const ofFirst = ["limited", "retry", "states"] as const
    yield* Effect.promise(() =>
      until(
        async () => ofFirst.map((name) => tries[name]),
        (counts) => counts.every((count) => count > 5),
        60_000
      )
    )
    assert.isAbove(tries.next, 0, "the shards behind one that is kept wait for it")
    for (const [stream, name] of [
      ["BELLCAST_WORK", "retry"],
      ["BELLCAST_LOG", "states"]
    ] as const)
      yield* Effect.promise(() =>
        until(
          () => admin.jsm.consumers.info(stream, name),
          ({ num_ack_pending, num_pending }) => num_ack_pending + num_pending === 0
        )
      )
  })
  const logger = Logger.make(
    ({ logLevel, message }) => void written.push([String(message), logLevel])
  )
  const services = Layer.merge(natsLayer({ url: nats.url, name: "test" }), Logger.layer([logger]))
  await Effect.runPromise(program.pipe(Effect.provide(services)))
  for (const name of ["limited", "retry", "states"])
    assert.isTrue(
      written.some(
        ([text, level]) =>
          text.includes(`${name}: a message failed 5 times or more and is kept`) &&
          level === "Error"
      ),
      `no error names a message of ${name} that is kept`
    )
})

it("more messages than a thousand that die in turns are all given up", {
  timeout: 120_000
}, async () => {
  const count = 1_100
  await using nats = await startNats({ syncAlways: false })
  const givenUp = new Set<number>()
  const program = Effect.gen(function* () {
    yield* provision(1)
    const log = yield* EventLog
    const subject = subjects.broadcast("test", channelToken("news"))
    yield* Effect.forEach(
      Array.from({ length: count }),
      () => log.append("log", { subject, type: "broadcast", body: {} }),
      { concurrency: 200, discard: true }
    )
    const consumers = yield* Consumers
    yield* Effect.forkChild(
      consumers.each(
        ...(["log", "planner", 64] as const),
        () => Effect.die(new Error("a defect")),
        ({ seq }, reason) =>
          Effect.as(
            Effect.sync(() => givenUp.add(seq)),
            never(reason)
          )
      )
    )
    yield* Effect.promise(() =>
      until(
        async () => givenUp.size,
        (size) => size === count,
        60_000
      )
    )
  })
  const services = Layer.merge(natsLayer({ url: nats.url, name: "test" }), Logger.layer([]))
  await Effect.runPromise(program.pipe(Effect.provide(services)))
})
