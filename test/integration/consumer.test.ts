// Consumers: a process takes from the stream what it has hands for, and leaves the rest to others.
import { jetstream, jetstreamManager } from "@nats-io/jetstream"
import { connect, nanos } from "@nats-io/transport-node"
import { Deferred, Effect, Fiber, Layer, Logger } from "effect"
import { assert, it } from "vitest"
import { provision } from "#nats/admin/provision.ts"
import { natsLayer } from "#nats/layer.ts"
import { Consumers, done, keep } from "#nats/stream/consumer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { Backlog } from "#nats/watch/backlog.ts"
import { subjects } from "#streams/subjects.ts"
import { channelToken } from "#streams/tokens.ts"
import { until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"

const handful = 4
const keepAll = () => Effect.succeed(keep)

/** Appends broadcasts for the planner. */
const appendBroadcasts = Effect.fnUntraced(function* (count: number) {
  const log = yield* EventLog
  for (let i = 0; i < count; i++) {
    yield* log.append("log", {
      subject: subjects.broadcast("test", channelToken("news")),
      type: "broadcast",
      body: {}
    })
  }
})

it("has at most as many messages in hand as it has hands, and gives them up on shutdown", {
  timeout: 60_000
}, async () => {
  await using nats = await startNats()
  const nc = await connect({ servers: nats.url })
  const jsm = await jetstreamManager(nc, { checkAPI: false })
  const info = () => jsm.consumers.info("BELLCAST_LOG", "planner")
  const program = Effect.gen(function* () {
    yield* provision(1)
    const consumers = yield* Consumers
    yield* appendBroadcasts(50)
    const gate = yield* Deferred.make<void>()
    let handled = 0
    const fiber = yield* Effect.forkChild(
      consumers.each(
        ...(["log", "planner", handful] as const),
        () =>
          Effect.andThen(
            Deferred.await(gate),
            Effect.sync(() => {
              handled += 1
              return done
            })
          ),
        keepAll
      )
    )
    const busy = yield* Effect.promise(() =>
      until(info, ({ num_ack_pending }) => num_ack_pending >= handful)
    )
    assert.equal(busy.num_ack_pending, handful)
    assert.equal(busy.num_pending, 50 - handful)
    yield* Deferred.succeed(gate, undefined)
    yield* Effect.promise(() =>
      until(
        async () => handled,
        (count) => count === 50
      )
    )
    yield* Fiber.interrupt(fiber)
    yield* Effect.promise(() =>
      until(info, ({ num_ack_pending, num_pending }) => num_ack_pending === 0 && num_pending === 0)
    )
    let failed = 0
    yield* appendBroadcasts(5)
    const failing = yield* Effect.forkChild(
      consumers.each(
        ...(["log", "planner", handful] as const),
        () =>
          Effect.sync(() => {
            failed += 1
            throw new Error("broken")
          }),
        keepAll
      )
    )
    yield* Effect.promise(() =>
      until(
        async () => failed,
        (count) => count >= 5
      )
    )
    yield* Fiber.interrupt(failing)
    const lines = written.filter((line) => line.includes("a message failed"))
    assert.lengthOf(lines, 1, "each message that fails writes a line of its own")
  })
  const written: Array<string> = []
  const logger = Logger.make(({ message }) => void written.push(String(message)))
  const services = Layer.merge(natsLayer({ url: nats.url, name: "test" }), Logger.layer([logger]))
  try {
    await Effect.runPromise(program.pipe(Effect.provide(services)))
  } finally {
    await nc.close()
  }
})

it("handles fewer at a time while its limit is lower, and as many as before after that", {
  timeout: 60_000
}, async () => {
  await using nats = await startNats({ syncAlways: false })
  let limit = handful
  let most = 0
  let isOver = false
  const inHand = new Set<Deferred.Deferred<void>>()
  const inHandAre = (count: number) =>
    Effect.promise(() =>
      until(
        async () => inHand.size,
        (size) => size === count
      )
    )
  const program = Effect.gen(function* () {
    yield* provision(1)
    const consumers = yield* Consumers
    yield* appendBroadcasts(50)
    const handle = Effect.fnUntraced(function* () {
      if (isOver) return done
      const end = yield* Deferred.make<void>()
      inHand.add(end)
      most = Math.max(most, inHand.size)
      yield* Deferred.await(end)
      return done
    })
    const endOne = Effect.suspend(() => {
      const [first] = inHand
      inHand.delete(first!)
      return Deferred.succeed(first!, undefined)
    })
    const fiber = yield* Effect.forkChild(
      consumers.each(...(["log", "planner", handful] as const), handle, keepAll, () => limit)
    )
    yield* inHandAre(handful)
    limit = 1
    // All four hands end, and one of them takes the next message.
    for (let n = 0; n < handful; n++) yield* endOne
    most = 0
    for (let n = 0; n < 10; n++) {
      yield* inHandAre(1)
      yield* endOne
    }
    assert.equal(most, 1)
    limit = handful
    yield* inHandAre(handful)
    isOver = true
    for (let n = 0; n < handful; n++) yield* endOne
    yield* Fiber.interrupt(fiber)
  })
  await Effect.runPromise(program.pipe(Effect.provide(natsLayer({ url: nats.url, name: "test" }))))
})

it("pulls for all idle workers at once, and does not change a consumer with fewer pull requests", {
  timeout: 60_000
}, async () => {
  const hands = 600
  await using nats = await startNats({ syncAlways: false })
  const nc = await connect({ servers: nats.url })
  const jsm = await jetstreamManager(nc, { checkAPI: false })
  const info = () => jsm.consumers.info("BELLCAST_WORK", "retry")
  const program = Effect.gen(function* () {
    yield* provision(1)
    const consumers = yield* Consumers
    const fiber = yield* Effect.forkChild(
      consumers.each("work", "retry", hands, () => Effect.succeed(done), keepAll)
    )
    yield* Effect.promise(() => until(info, ({ num_waiting }) => num_waiting === 1))
    yield* Fiber.interrupt(fiber)
    const { config } = yield* Effect.promise(info)
    yield* Effect.promise(() => jsm.consumers.delete("BELLCAST_WORK", "retry"))
    yield* Effect.promise(() =>
      jsm.consumers.add("BELLCAST_WORK", { ...config, max_waiting: 512, ack_wait: nanos(1_000) })
    )
    yield* provision(1)
    const { ack_wait, max_waiting } = (yield* Effect.promise(info)).config
    assert.deepEqual({ ack_wait, max_waiting }, { ack_wait: config.ack_wait, max_waiting: 512 })
  })
  try {
    await Effect.runPromise(
      program.pipe(Effect.provide(natsLayer({ url: nats.url, name: "test" })))
    )
  } finally {
    await nc.close()
  }
})

it("leaves the backlog known when somebody deletes it", { timeout: 60_000 }, async () => {
  await using nats = await startNats()
  const nc = await connect({ servers: nats.url })
  const jsm = await jetstreamManager(nc, { checkAPI: false })
  const program = Effect.gen(function* () {
    yield* provision(1)
    const log = yield* EventLog
    const { snapshot } = yield* Backlog
    const subject = subjects.broadcast("test", channelToken("news"))
    const append = log.append("log", { subject, type: "broadcast", body: {} })
    /** The planner's backlog once a snapshot has so many messages of LOG. */
    const seen = (messages: number) =>
      Effect.promise(() =>
        until(
          () => Effect.runPromise(snapshot),
          ({ appended }) => appended.some((each) => each.messages === messages)
        )
      ).pipe(
        Effect.map(({ waiting }) => waiting.find(({ consumer }) => consumer === "planner")!),
        Effect.map(({ messages, oldest }) => ({ messages, oldest: oldest?.seq }))
      )
    yield* append
    const second = yield* append
    yield* Effect.promise(async () => {
      const consumer = await jetstream(nc).consumers.get("BELLCAST_LOG", "planner")
      assert.isTrue(await (await consumer.next())?.ackAck())
    })
    assert.deepEqual(yield* seen(2), { messages: 1, oldest: second.seq })
    yield* Effect.promise(() => jsm.consumers.delete("BELLCAST_LOG", "planner"))
    yield* append
    assert.deepEqual(yield* seen(3), { messages: 1, oldest: second.seq })
  })
  await Effect.runPromise(program.pipe(Effect.provide(natsLayer({ url: nats.url, name: "test" }))))
  await nc.close()
})

it("does not handle a message twice at once when its consumer is made again", {
  timeout: 60_000
}, async () => {
  await using nats = await startNats({ syncAlways: false })
  await using admin = await connectAdmin(nats.url)
  const info = () => admin.jsm.consumers.info("BELLCAST_LOG", "planner")
  const handled: Array<number> = []
  const program = Effect.gen(function* () {
    yield* provision(1)
    const log = yield* EventLog
    const consumers = yield* Consumers
    const gate = yield* Deferred.make<void>()
    yield* Effect.forkChild(
      consumers.each(
        ...(["log", "planner", handful] as const),
        ({ seq }) =>
          Effect.sync(() => handled.push(seq)).pipe(
            Effect.andThen(Deferred.await(gate)),
            Effect.as(done)
          ),
        keepAll
      )
    )
    const subject = subjects.broadcast("test", channelToken("news"))
    yield* log.append("log", { subject, type: "broadcast", body: {} })
    const isInHand = Effect.promise(() => until(info, (now) => now.num_ack_pending === 1))
    yield* isInHand
    yield* Effect.promise(() => admin.jsm.consumers.delete("BELLCAST_LOG", "planner"))
    yield* provision(1)
    yield* isInHand
    yield* Deferred.succeed(gate, undefined)
    yield* Effect.promise(() => until(info, (now) => now.ack_floor.stream_seq === 1))
  })
  await Effect.runPromise(program.pipe(Effect.provide(natsLayer({ url: nats.url, name: "test" }))))
  assert.deepEqual(handled, [1])
})
