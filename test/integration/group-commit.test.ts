// What many write at once goes to the server in batches, and nobody can tell: each has the sequence of its own message, its own conflict, its own
// repetition, and is written once.
import { setImmediate } from "node:timers/promises"
import { Effect, Fiber, Result, type Scope } from "effect"
import { assert, it } from "vitest"
import { Buckets } from "#log/bucket.ts"
import { makeGroupCommit } from "#log/group-commit.ts"
import { logLayer } from "#log/layer.ts"
import { type Append, Log } from "#log/log.ts"
import { Nats } from "#log/nats.ts"
import { provision } from "#log/provision.ts"
import type { Stored } from "#log/stored.ts"
import { filters, subjects } from "#streams/subjects.ts"
import { channelToken } from "#streams/tokens.ts"
import { until } from "../support/client.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { startNatsProxy } from "../support/nats-proxy.ts"

const message = (n: number, more: Partial<Append<"broadcast/1">> = {}): Append<"broadcast/1"> => ({
  subject: subjects.broadcast("rest", channelToken(`channel-${n}`)),
  type: "broadcast/1",
  body: { data: { n } },
  expect: 0,
  ...more
})

const upTo = (count: number, from = 0) => Array.from({ length: count }, (_, n) => message(from + n))

const appendAll = (messages: ReadonlyArray<Append<"broadcast/1">>) =>
  Effect.flatMap(Log, (log) => Effect.forEach(messages, (one) => Effect.result(log.append("log", one)), { concurrency: "unbounded" }))

const stored = Effect.flatMap(Log, (log) => {
  const found: Array<Stored> = []
  return log.replay("log", [filters.broadcasts], (one) => Effect.sync(() => found.push(one))).pipe(Effect.as(found))
})

const subjectsOf = (found: ReadonlyArray<Pick<Stored, "subject">>) => found.map(({ subject }) => subject).toSorted()
const isBatched = ({ header }: Stored) => header("Nats-Batch-Id") !== undefined

/** Returns when what is appended goes in batches again. */
const batchedAgain = Effect.gen(function* () {
  for (let from = 1_000; (yield* stored).filter(isBatched).length === 0; from += 20) yield* appendAll(upTo(20, from))
}).pipe(Effect.timeout("10 seconds"))

const withLog = async <E>(program: (nats: TestNats) => Effect.Effect<void, E, Log | Buckets | Nats | Scope.Scope>) => {
  await using nats = await startNats()
  const layer = logLayer({ url: nats.url, name: "test" })
  await Effect.runPromise(Effect.andThen(provision(1), program(nats)).pipe(Effect.provide(layer), Effect.scoped))
}

it("gives each message of a batch its own sequence", { timeout: 60_000 }, () =>
  withLog(() =>
    Effect.gen(function* () {
      const messages = upTo(1_200)
      const answers = yield* appendAll(messages)
      const found = yield* stored
      assert.deepEqual(subjectsOf(found), subjectsOf(messages))
      const seqOf = new Map(found.map(({ seq, subject }) => [subject, seq]))
      for (const [n, answer] of answers.entries())
        assert.deepEqual(Result.getOrThrow(answer), { seq: seqOf.get(messages[n]!.subject)!, duplicate: false })
      assert.isAbove(found.filter(isBatched).length, 1_000)
      assert.isAtMost(Math.max(...found.map(({ header }) => Number(header("Nats-Batch-Sequence") ?? 0))), 500)
    })
  )
)

it("keeps batches of large messages small", { timeout: 60_000 }, () =>
  withLog(() =>
    Effect.gen(function* () {
      const answers = yield* appendAll(upTo(200).map((one) => ({ ...one, body: { data: { text: "x".repeat(30 * 1024) } } })))
      assert.isTrue(answers.every(Result.isSuccess))
      const sequences = (yield* stored).map(({ header }) => Number(header("Nats-Batch-Sequence") ?? 0))
      assert.isAbove(Math.max(...sequences), 16)
      assert.isAtMost(Math.max(...sequences), 70)
    })
  )
)

it("sends few messages one by one", () =>
  withLog(() =>
    Effect.gen(function* () {
      yield* appendAll(upTo(10))
      assert.lengthOf((yield* stored).filter(isBatched), 0)
    })
  ))

it("refuses only the one that comes too late, and goes on in batches a moment later", { timeout: 60_000 }, () =>
  withLog(() =>
    Effect.gen(function* () {
      const log = yield* Log
      yield* log.append("log", message(30))
      const answers = yield* appendAll(upTo(60))
      const refused = answers.flatMap((answer, n) => (Result.isFailure(answer) ? [[n, answer.failure._tag]] : []))
      assert.deepEqual(refused, [[30, "AppendConflict"]])
      const found = yield* stored
      assert.deepEqual(subjectsOf(found), subjectsOf(upTo(60)))
      assert.lengthOf(found.filter(isBatched), 0)
      yield* batchedAgain
    })
  )
)

it("lets the first of two that expect the same win, and keeps the others out of it", () =>
  withLog(() =>
    Effect.gen(function* () {
      const answers = yield* appendAll([...upTo(40), ...upTo(20)])
      assert.isTrue(answers.slice(0, 40).every(Result.isSuccess))
      assert.deepEqual(
        answers.slice(40).map((answer) => (Result.isFailure(answer) ? answer.failure._tag : "stored")),
        Array<"AppendConflict">(20).fill("AppendConflict")
      )
      const found = yield* stored
      assert.deepEqual(subjectsOf(found), subjectsOf(upTo(40)))
      assert.lengthOf(found.filter(isBatched), 40)
    })
  ))

it("answers everybody who wants to write to one subject while others are on their way", { timeout: 90_000 }, () =>
  withLog(() =>
    Effect.gen(function* () {
      const turns = (count: number): Effect.Effect<void> =>
        count === 0
          ? Effect.void
          : Effect.andThen(
              Effect.promise(() => setImmediate()),
              turns(count - 1)
            )
      const same = Array.from({ length: 40 }, () => message(100))
      const [, , answers] = yield* Effect.all(
        [appendAll(upTo(15)), Effect.andThen(turns(3), appendAll(upTo(15, 15))), Effect.andThen(turns(6), appendAll(same))],
        { concurrency: "unbounded" }
      )
      assert.lengthOf(answers.filter(Result.isSuccess), 1)
      assert.lengthOf(yield* stored, 31)
    })
  )
)

it("stores what many say of the same channel without an expectation", () =>
  withLog(() =>
    Effect.gen(function* () {
      const { expect: _, ...one } = message(1)
      const answers = yield* appendAll(Array.from({ length: 60 }, (__, n) => ({ ...one, body: { data: { n } } })))
      const found = yield* stored
      const texts = new Map(found.map(({ seq, text }) => [seq, text]))
      assert.lengthOf(found, 60)
      for (const [n, answer] of answers.entries()) assert.equal(texts.get(Result.getOrThrow(answer).seq), JSON.stringify({ data: { n } }))
    })
  ))

it("recognises a repeated id in a batch, and those of an earlier one", { timeout: 60_000 }, () =>
  withLog(() =>
    Effect.gen(function* () {
      const { expect: _, ...one } = message(1)
      const messages = Array.from({ length: 40 }, (__, n) => ({ ...one, messageId: `id-${n % 30}` }))
      const first = (yield* appendAll(messages)).map(Result.getOrThrow)
      assert.lengthOf(yield* stored, 30)
      assert.lengthOf(
        first.filter(({ duplicate }) => duplicate),
        10
      )
      for (const [n, { seq }] of first.entries()) assert.equal(seq, first[n % 30]!.seq)
      yield* batchedAgain
      const before = yield* stored
      const second = (yield* appendAll(messages.slice(0, 30))).map(Result.getOrThrow)
      assert.deepEqual(
        second,
        first.slice(0, 30).map(({ seq }) => ({ seq, duplicate: true }))
      )
      assert.lengthOf(yield* stored, before.length)
    })
  )
)

it("writes many entries of a bucket, each with its own revision", () =>
  withLog(() =>
    Effect.gen(function* () {
      const buckets = yield* Buckets
      const keys = Array.from({ length: 100 }, (_, n) => `key-${n}`)
      const put = (key: string, revision: number) => buckets.put("cache", key, { key, revision }, revision, { ttlSeconds: 60 })
      const first = yield* Effect.forEach(keys, (key) => put(key, 0), { concurrency: "unbounded" })
      const second = yield* Effect.forEach(keys, (key, n) => put(key, first[n]!), { concurrency: "unbounded" })
      const entries = yield* Effect.forEach(keys, (key) => buckets.get("cache", key), { concurrency: 10 })
      assert.deepEqual(
        entries.map((entry) => ({ ...entry })),
        keys.map((key, n) => ({ key, value: { key, revision: first[n]! }, revision: second[n]! }))
      )
    })
  ))

it("writes each message once when the server is killed over it, and calls none of them a conflict", { timeout: 120_000 }, () =>
  withLog((nats) =>
    Effect.gen(function* () {
      const log = yield* Log
      const messages = upTo(3_000)
      const kill = Effect.promise(async () => {
        await nats.kill()
        await nats.restart()
      }).pipe(Effect.delay("60 millis"))
      const [answers] = yield* Effect.all([Effect.forEach(messages, (one) => log.append("log", one), { concurrency: 200 }), kill], {
        concurrency: 2
      })
      const found = yield* stored
      assert.deepEqual(subjectsOf(found), subjectsOf(messages))
      const seqOf = new Map(found.map(({ seq, subject }) => [subject, seq]))
      for (const [n, { seq }] of answers.entries()) assert.equal(seq, seqOf.get(messages[n]!.subject))
    })
  )
)

it("calls nothing a conflict that was stored and not answered", { timeout: 60_000 }, async () => {
  await using nats = await startNats()
  await using proxy = await startNatsProxy(nats.url)
  const program = Effect.gen(function* () {
    yield* provision(1)
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
  await Effect.runPromise(program.pipe(Effect.provide(logLayer({ url: proxy.url, name: "test" })), Effect.scoped))
})

it("forgets who does not want to write any more before it is sent", () =>
  withLog(() =>
    Effect.gen(function* () {
      const log = yield* Log
      const fibers = yield* Effect.forEach(upTo(600), (one) => Effect.forkChild(log.append("log", one)))
      yield* Effect.promise(() => setImmediate())
      // The first 500 are on their way, the others wait for their batch.
      yield* Effect.forEach(fibers.slice(550), Fiber.interrupt, { concurrency: "unbounded" })
      yield* Effect.forEach(fibers.slice(0, 550), Fiber.join)
      assert.deepEqual(subjectsOf(yield* stored), subjectsOf(upTo(550)))
    })
  ))

it("lets nobody wait for an answer that others do not get", { timeout: 90_000 }, () =>
  withLog(() =>
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
        yield* Effect.forEach(sends, (now, n) => Effect.delay(Effect.all(now, { concurrency: "unbounded" }), n * 20), {
          concurrency: "unbounded"
        })
        const [first, ...rest] = order.splice(0)
        assert.equal(first, "fresh: Success")
        assert.isTrue(rest.every((one) => one === "silent: Failure"))
      }
    })
  )
)

it("sends each message when it comes where batches do not pay", () =>
  withLog(() =>
    Effect.gen(function* () {
      const store = makeGroupCommit(yield* Nats, "test", false)
      const send = ({ subject }: { readonly subject: string }) => store("BELLCAST_LOG", { subject, payload: "{}", headers: {} }, 5_000)
      yield* Effect.forEach(upTo(60), send, { concurrency: "unbounded" })
      const found = yield* stored
      assert.lengthOf(found, 60)
      assert.lengthOf(found.filter(isBatched), 0)
    })
  ))
