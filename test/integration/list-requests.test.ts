// Lists of broadcasts read many of them by a few requests.
import { Effect } from "effect"
import { assert, it } from "vitest"
import { startHeader } from "#domain/broadcast-start.ts"
import { provision } from "#nats/admin/provision.ts"
import { listBroadcasts } from "#nats/broadcasts/list.ts"
import { Nats } from "#nats/connection/connection.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { channelToken } from "#streams/tokens.ts"
import { startNats } from "../support/nats.ts"

const at = new Date(Date.now() + 3_600_000).toISOString()
const channel = channelToken("news")

/** Appends a broadcast that waits for its start. */
const addScheduled = Effect.gen(function* () {
  const log = yield* EventLog
  const { seq: broadcast } = yield* log.append("log", {
    subject: subjects.broadcast("test", channel),
    type: "broadcast/1",
    body: {},
    headers: { [startHeader]: at }
  })
  const body = { broadcast, channel, run: 0, by: "nats:test", at: 1, schedule: { at } }
  yield* log.once("log", {
    subject: subjects.state(broadcast),
    type: "broadcast.scheduled/1",
    body
  })
})

it("lists those that wait for their start by a few requests, however many they are", async () => {
  await using nats = await startNats()
  const program = Effect.gen(function* () {
    yield* provision(1)
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
  const services = natsLayer({ url: nats.url, name: "test" })
  await Effect.runPromise(program.pipe(Effect.provide(services)))
})
