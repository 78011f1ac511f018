// Consumers: a process takes from the stream what it has hands for, and leaves the rest to others.
import { jetstreamManager } from "@nats-io/jetstream"
import { connect, nanos } from "@nats-io/transport-node"
import { Deferred, Effect, Fiber } from "effect"
import { assert, it } from "vitest"
import { provision } from "#nats/admin/provision.ts"
import { natsLayer } from "#nats/layer.ts"
import { Consumers, done } from "#nats/stream/consumer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { channelToken } from "#streams/tokens.ts"
import { until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"

const handful = 4

it("has at most as many messages in hand as it has hands, and gives them up on shutdown", {
  timeout: 60_000
}, async () => {
  await using nats = await startNats()
  const nc = await connect({ servers: nats.url })
  const jsm = await jetstreamManager(nc, { checkAPI: false })
  const info = () => jsm.consumers.info("BELLCAST_LOG", "planner")
  const program = Effect.gen(function* () {
    yield* provision(1)
    const log = yield* EventLog
    const consumers = yield* Consumers
    for (let i = 0; i < 50; i++) {
      yield* log.append("log", {
        subject: subjects.broadcast("test", channelToken("news")),
        type: "broadcast/1",
        body: {}
      })
    }
    const gate = yield* Deferred.make<void>()
    let handled = 0
    const fiber = yield* Effect.forkChild(
      consumers.each("log", "planner", handful, () =>
        Effect.andThen(
          Deferred.await(gate),
          Effect.sync(() => {
            handled += 1
            return done
          })
        )
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
  })
  try {
    await Effect.runPromise(
      program.pipe(Effect.provide(natsLayer({ url: nats.url, name: "test" })))
    )
  } finally {
    await nc.close()
  }
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
      consumers.each("work", "retry", hands, () => Effect.succeed(done))
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
