// What a change of a state costs the workers in requests to NATS.
import { Effect, Layer } from "effect"
import { assert, it } from "vitest"
import { Settings } from "#config"
import { makeChanges } from "#delivery/changes/changes.ts"
import type { JobTools } from "#delivery/jobs/tools.ts"
import { startProgress } from "#domain/progress/progress.ts"
import { provision } from "#nats/admin/provision.ts"
import { Nats } from "#nats/connection/connection.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { keys } from "#streams/buckets.ts"
import { subjects } from "#streams/subjects.ts"
import { channelToken } from "#streams/tokens.ts"
import { startNats } from "../support/nats.ts"

const channel = channelToken("news")

it("reads for the line of a change only who published, and the counts", async () => {
  await using nats = await startNats()
  const program = Effect.gen(function* () {
    yield* provision(1)
    const log = yield* EventLog
    const { nc } = yield* Nats
    const subject = subjects.broadcast("shop", channel)
    const { seq: broadcast } = yield* log.append("log", { subject, type: "broadcast/1", body: {} })
    const at = new Date().toISOString()
    yield* log.append("log", {
      subject: subjects.state(broadcast),
      type: "broadcast.started/1",
      body: { broadcast, channel, run: 0, by: "schedule", at: Date.now(), schedule: { at } }
    })
    const stored = (yield* log.last("log", subjects.state(broadcast)))!
    const floor = { subscriptions: 0, registrations: 0 }
    const times = { acceptedAt: 1, expiresAt: 2, at: 1 }
    const counts = startProgress({ broadcast, depth: 0, shards: 1, floor, ...times }, 1)
    yield* (yield* Buckets).put("broadcasts", keys.broadcast(broadcast), counts, 0)
    // A start appends nothing.
    const handle = yield* makeChanges({} as JobTools)
    const requestsOf = Effect.fnUntraced(function* (deliveryCount: number) {
      const before = nc.stats().outMsgs
      yield* handle({ ...stored, message: stored.message, deliveryCount })
      return nc.stats().outMsgs - before
    })
    // The line is written once.
    const others = yield* requestsOf(2)
    assert.isAtMost((yield* requestsOf(1)) - others, 2)
  })
  const services = Layer.merge(natsLayer({ url: nats.url, name: "test" }), Settings.layer)
  await Effect.runPromise(program.pipe(Effect.provide(services)))
})
