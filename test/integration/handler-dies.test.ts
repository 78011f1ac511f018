// A message on which the handler dies each time is given up after five deaths, in this process; one
// that it cannot handle because NATS is away is not.
import { Effect, Layer, Logger } from "effect"
import { assert, it } from "vitest"
import { makeGiveUp } from "#delivery/jobs/give-up.ts"
import type { RetryJob } from "#domain/job.ts"
import { provision } from "#nats/admin/provision.ts"
import { unavailable } from "#nats/connection/errors.ts"
import { natsLayer } from "#nats/layer.ts"
import { Consumers, done, never } from "#nats/stream/consumer.ts"
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
    yield* log.append("work", { subject, type: "retry/1", body: job })
    const consumers = yield* Consumers
    const dies = () => Effect.die(new Error("a defect"))
    yield* Effect.forkChild(consumers.each("work", "retry", 1, dies, makeGiveUp(log)))
    const body = (last_by_subj: string) =>
      Effect.map(log.last("work", last_by_subj), (found) => found?.message)
    yield* Effect.promise(() =>
      until(
        () => admin.jsm.consumers.info("BELLCAST_WORK", "retry"),
        ({ num_ack_pending, num_pending }) => num_ack_pending + num_pending === 0
      )
    )
    const outcome = yield* body(`bellcast.outcome.${place}`)
    assert.deepInclude(outcome, { type: "outcome/1", broadcast: 1, pushes: 0, final: true })
    const [result] = outcome?.type === "outcome/1" ? outcome.results : []
    const end = { fate: "dead", reason: "internal", attempt: 2, service: "fcm" } as const
    assert.deepInclude(result, { ...end, former: { reason: "timeout", attempt: 2 } })
    const letter = yield* body(`bellcast.dead.news.1.${job.user}.a`)
    assert.deepInclude(letter, { type: "dead/1", generation: 9, reason: "internal", attempts: 2 })
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
        type: "broadcast/1",
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
