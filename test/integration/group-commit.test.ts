// What many write at once goes to the server in batches, and nobody can tell: each has the sequence
// of its own message, its own conflict, its own repetition, and is written once.
import { setImmediate } from "node:timers/promises"
import { Effect, Result } from "effect"
import { assert, it } from "vitest"
import { Nats } from "#nats/connection/connection.ts"
import { makeGroupCommit } from "#nats/connection/group-commit.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import {
  appendAll,
  isBatched,
  message,
  stored,
  subjectsOf,
  upTo,
  useLog
} from "../support/appends.ts"

const withLog = useLog()

/** Returns when what is appended goes in batches again. */
const batchedAgain = Effect.gen(function* () {
  for (let from = 1_000; (yield* stored).filter(isBatched).length === 0; from += 20)
    yield* appendAll(upTo(20, from))
}).pipe(Effect.timeout("10 seconds"))

it("gives each message of a batch its own sequence", { timeout: 60_000 }, () =>
  withLog(
    Effect.gen(function* () {
      const messages = upTo(1_200)
      const answers = yield* appendAll(messages)
      const found = yield* stored
      assert.deepEqual(subjectsOf(found), subjectsOf(messages))
      const seqOf = new Map(found.map(({ seq, subject }) => [subject, seq]))
      for (const [n, answer] of answers.entries())
        assert.deepEqual(Result.getOrThrow(answer), {
          seq: seqOf.get(messages[n]!.subject)!,
          duplicate: false
        })
      assert.isAbove(found.filter(isBatched).length, 1_000)
      assert.isAtMost(
        Math.max(...found.map(({ header }) => Number(header("Nats-Batch-Sequence") ?? 0))),
        500
      )
    })
  )
)

it("keeps batches of large messages small", { timeout: 60_000 }, () =>
  withLog(
    Effect.gen(function* () {
      const answers = yield* appendAll(
        upTo(200).map((one) => ({ ...one, body: { data: { text: "x".repeat(30 * 1024) } } }))
      )
      assert.isTrue(answers.every(Result.isSuccess))
      const sequences = (yield* stored).map(({ header }) =>
        Number(header("Nats-Batch-Sequence") ?? 0)
      )
      assert.isAbove(Math.max(...sequences), 16)
      assert.isAtMost(Math.max(...sequences), 70)
    })
  )
)

it("sends few messages one by one", () =>
  withLog(
    Effect.gen(function* () {
      yield* appendAll(upTo(10))
      assert.lengthOf((yield* stored).filter(isBatched), 0)
    })
  ))

it(
  "refuses only the one that comes too late, and goes on in batches a moment later",
  { timeout: 60_000 },
  () =>
    withLog(
      Effect.gen(function* () {
        const log = yield* EventLog
        yield* log.append("log", message(30))
        const answers = yield* appendAll(upTo(60))
        const refused = answers.flatMap((answer, n) =>
          Result.isFailure(answer) ? [[n, answer.failure._tag]] : []
        )
        assert.deepEqual(refused, [[30, "AppendConflict"]])
        const found = yield* stored
        assert.deepEqual(subjectsOf(found), subjectsOf(upTo(60)))
        assert.lengthOf(found.filter(isBatched), 0)
        yield* batchedAgain
      })
    )
)

it("lets the first of two that expect the same win, and keeps the others out of it", () =>
  withLog(
    Effect.gen(function* () {
      const answers = yield* appendAll([...upTo(40), ...upTo(20)])
      assert.isTrue(answers.slice(0, 40).every(Result.isSuccess))
      assert.deepEqual(
        answers
          .slice(40)
          .map((answer) => (Result.isFailure(answer) ? answer.failure._tag : "stored")),
        Array<"AppendConflict">(20).fill("AppendConflict")
      )
      const found = yield* stored
      assert.deepEqual(subjectsOf(found), subjectsOf(upTo(40)))
      assert.lengthOf(found.filter(isBatched), 40)
    })
  ))

it(
  "answers everybody who wants to write to one subject while others are on their way",
  { timeout: 90_000 },
  () =>
    withLog(
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
          [
            appendAll(upTo(15)),
            Effect.andThen(turns(3), appendAll(upTo(15, 15))),
            Effect.andThen(turns(6), appendAll(same))
          ],
          { concurrency: "unbounded" }
        )
        assert.lengthOf(answers.filter(Result.isSuccess), 1)
        assert.lengthOf(yield* stored, 31)
      })
    )
)

it("stores what many say of the same channel without an expectation", () =>
  withLog(
    Effect.gen(function* () {
      const { expect: _, ...one } = message(1)
      const answers = yield* appendAll(
        Array.from({ length: 60 }, (__, n) => ({ ...one, body: { data: { n } } }))
      )
      const found = yield* stored
      const texts = new Map(found.map(({ seq, text }) => [seq, text]))
      assert.lengthOf(found, 60)
      for (const [n, answer] of answers.entries())
        assert.equal(texts.get(Result.getOrThrow(answer).seq), JSON.stringify({ data: { n } }))
    })
  ))

it("recognises a repeated id in a batch, and those of an earlier one", { timeout: 60_000 }, () =>
  withLog(
    Effect.gen(function* () {
      const { expect: _, ...one } = message(1)
      const messages = Array.from({ length: 40 }, (__, n) => ({
        ...one,
        messageId: `id-${n % 30}`
      }))
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
  withLog(
    Effect.gen(function* () {
      const buckets = yield* Buckets
      const keys = Array.from({ length: 100 }, (_, n) => `key-${n}`)
      const put = (key: string, revision: number) =>
        buckets.put("cache", key, { key, revision }, revision, { ttlSeconds: 60 })
      const first = yield* Effect.forEach(keys, (key) => put(key, 0), { concurrency: "unbounded" })
      const second = yield* Effect.forEach(keys, (key, n) => put(key, first[n]!), {
        concurrency: "unbounded"
      })
      const entries = yield* Effect.forEach(keys, (key) => buckets.get("cache", key), {
        concurrency: 10
      })
      assert.deepEqual(
        entries.map((entry) => ({
          key: entry?.key,
          value: entry?.value,
          revision: entry?.revision
        })),
        keys.map((key, n) => ({ key, value: { key, revision: first[n]! }, revision: second[n]! }))
      )
    })
  ))

it("sends each message when it comes where batches do not pay", () =>
  withLog(
    Effect.gen(function* () {
      const nats = yield* Nats
      const store = makeGroupCommit(nats, "test", false, nats.silences)
      const send = ({ subject }: { readonly subject: string }) =>
        store("BELLCAST_LOG", { subject, payload: "{}", headers: {} }, 5_000)
      yield* Effect.forEach(upTo(60), send, { concurrency: "unbounded" })
      const found = yield* stored
      assert.lengthOf(found, 60)
      assert.lengthOf(found.filter(isBatched), 0)
    })
  ))
