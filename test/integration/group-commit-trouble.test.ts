// Batches when the server is killed or silent, and writers that give up: each message is written
// once, and no writer waits for the others.
import { setImmediate } from "node:timers/promises"
import { Deferred, Effect, Fiber, Result } from "effect"
import { assert, it } from "vitest"
import { Nats } from "#nats/connection/connection.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import {
  appendAll,
  message,
  stored,
  subjectsOf,
  upTo,
  useLog,
  withLogAt
} from "../support/appends.ts"
import { until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { startNatsProxy } from "../support/nats-proxy.ts"

const withLog = useLog()

it("writes each message once when the server is killed over it, and calls none a conflict", {
  timeout: 120_000
}, async () => {
  await using nats = await startNats()
  await withLogAt(
    nats.url,
    Effect.gen(function* () {
      const log = yield* EventLog
      const messages = upTo(3_000)
      const begun = yield* Deferred.make<void>()
      const kill = Effect.andThen(
        Deferred.await(begun),
        Effect.promise(async () => {
          await nats.kill()
          await nats.restart()
        })
      )
      const append = (one: (typeof messages)[number]) =>
        Effect.tap(log.append("log", one), () => Deferred.succeed(begun, undefined))
      const [answers] = yield* Effect.all(
        [Effect.forEach(messages, append, { concurrency: 200 }), kill],
        { concurrency: 2 }
      )
      const found = yield* stored
      assert.deepEqual(subjectsOf(found), subjectsOf(messages))
      const seqOf = new Map(found.map(({ seq, subject }) => [subject, seq]))
      for (const [n, { seq }] of answers.entries())
        assert.equal(seq, seqOf.get(messages[n]!.subject))
    })
  )
})

it("calls nothing a conflict that was stored and not answered", { timeout: 60_000 }, async () => {
  await using nats = await startNats()
  await using proxy = await startNatsProxy(nats.url)
  const program = Effect.gen(function* () {
    const { nc } = yield* Nats
    const before = nc.stats().outMsgs
    proxy.hold()
    const appended = yield* Effect.forkChild(appendAll(upTo(40)))
    // Each of them once, and again.
    yield* Effect.promise(() =>
      until(
        async () => nc.stats().outMsgs,
        (sent) => sent >= before + 80
      )
    )
    proxy.release()
    assert.isTrue((yield* Fiber.join(appended)).every(Result.isSuccess))
    assert.deepEqual(subjectsOf(yield* stored), subjectsOf(upTo(40)))
  })
  await withLogAt(proxy.url, program)
})

it("forgets who does not want to write any more before it is sent", () =>
  withLog(
    Effect.gen(function* () {
      const log = yield* EventLog
      const fibers = yield* Effect.forEach(upTo(600), (one) =>
        Effect.forkChild(log.append("log", one))
      )
      yield* Effect.promise(() => setImmediate())
      // The first 500 are on their way, the others wait for their batch.
      yield* Effect.forEach(fibers.slice(550), Fiber.interrupt, { concurrency: "unbounded" })
      yield* Effect.forEach(fibers.slice(0, 550), Fiber.join)
      assert.deepEqual(subjectsOf(yield* stored), subjectsOf(upTo(550)))
    })
  ))

it("lets nobody wait for an answer that others do not get", { timeout: 90_000 }, () =>
  withLog(
    Effect.gen(function* () {
      const { nc, store } = yield* Nats
      yield* Effect.acquireRelease(
        Effect.sync(() => nc.subscribe("silent", { callback: () => {} })),
        (subscription) => Effect.sync(() => subscription.unsubscribe())
      )
      const order: Array<string> = []
      const send = (subject: string, name: string) =>
        store("BELLCAST_LOG", { subject, payload: "{}", headers: {} }, 3_000).pipe(
          Effect.exit,
          Effect.map(({ _tag }) => order.push(`${name}: ${_tag}`))
        )
      // A batch, and as many one by one as go at once.
      for (const counts of [[40], [15, 10]]) {
        const sends = [
          ...counts.map((count) => Array.from({ length: count }, () => send("silent", "silent"))),
          [send(message(counts.length).subject, "fresh")]
        ]
        yield* Effect.forEach(
          sends,
          (now, n) => Effect.delay(Effect.all(now, { concurrency: "unbounded" }), n * 20),
          {
            concurrency: "unbounded"
          }
        )
        const [first, ...rest] = order.splice(0)
        assert.equal(first, "fresh: Success")
        assert.isTrue(rest.every((one) => one === "silent: Failure"))
      }
    })
  )
)
