// The bound on broadcasts that wait for their start (contract 2.6).
import { jetstream } from "@nats-io/jetstream"
import { headers } from "@nats-io/transport-node"
import { Effect } from "effect"
import { assert, it } from "vitest"
import { scheduledMax, scheduledOfOneMax } from "#domain/broadcast-start.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { channelToken } from "#streams/tokens.ts"
import { changeState } from "../support/broadcast-states.ts"
import { call, until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startService } from "../support/service.ts"
import { idOf } from "../support/users.ts"

const at = new Date(Date.now() + 20 * 24 * 3_600_000).toISOString()
/** Above the sequences of LOG, which belong to other messages. */
const firstId = 1_000_000

/** Appends that a broadcast of each of these publishers waits, as the planner does. */
const fill = (natsUrl: string, publishers: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const append = (by: string, i: number) => {
      const broadcast = firstId + i
      const body = { broadcast, channel: channelToken("news"), run: 0, by, at: Date.now() }
      return log.append("log", {
        subject: subjects.state(broadcast),
        type: "broadcast.scheduled",
        body: { ...body, schedule: { at } }
      })
    }
    yield* Effect.forEach(publishers, append, { concurrency: 256, discard: true })
  }).pipe(Effect.provide(natsLayer({ url: natsUrl, name: "fill" })), Effect.runPromise)

it("refuses one more that would wait, and takes it when there is room again", {
  timeout: 180_000
}, async () => {
  await using nats = await startNats({ syncAlways: false })
  await using service = await startService({ natsUrl: nats.url })
  const { url } = service
  const waiting = new Set<string>()
  const publish = async (body: object, path = "/channels/news", key?: string) => {
    const headers: Record<string, string> = key === undefined ? {} : { "idempotency-key": key }
    const answer = await call(url, "POST", path, "publisher", body, headers)
    if (answer.status === 202 && "at" in body) waiting.add(answer.body.id)
    return answer
  }
  const first = await publish({ at }, undefined, "first")
  assert.equal(first.status, 202)
  await fill(
    nats.url,
    Array.from({ length: scheduledMax - 1 }, (_, i) => `user ${i % 2}`)
  )
  const direct = [{ at, to: { channels: ["news"] } }, "/broadcasts"] as const
  for (const [body, path] of [[{ at }, undefined] as const, direct]) {
    const refused = await until(
      () => publish(body, path),
      ({ status }) => status !== 202
    )
    assert.deepInclude(refused.body, { code: 429, error_code: "too-many-scheduled" })
    assert.match(refused.headers.get("retry-after") ?? "", /^\d+$/)
  }
  assert.equal((await publish({})).status, 202)
  // More than one read of the newest broadcasts of the channel has.
  await Promise.all(Array.from({ length: 160 }, () => publish({})))
  const again = await publish({ at }, undefined, "first")
  assert.deepEqual([again.status, again.body.id], [202, first.body.id])
  assert.equal((await publish({ at }, undefined, "second")).status, 429)

  await using admin = await connectAdmin(nats.url)
  const later = headers()
  later.set("Bellcast-Start-At", at)
  const subject = "bellcast.cmd.broadcast.billing.news"
  const { seq } = await jetstream(admin.nc).publish(subject, JSON.stringify({}), { headers: later })
  const { body } = await until(
    () => call(url, "GET", `/broadcasts/${seq}`, "publisher"),
    ({ body }) => body.data?.finished
  )
  assert.include(body.data.rejected, "wait for their start")
  // Those that were accepted before the bound was known, too.
  for (const id of waiting) await changeState(url, id, "cancelled")
  await until(
    () => publish({ at }),
    ({ status }) => status === 202
  )

  // A recreated consumer reads the rejected one again, now that there is room.
  const consumer = () => admin.jsm.consumers.info("BELLCAST_LOG", "planner")
  const { created } = await consumer()
  await admin.jsm.consumers.delete("BELLCAST_LOG", "planner")
  await until(
    () => consumer().catch(() => undefined),
    (info) => info !== undefined && info.created !== created && info.num_pending === 0
  )
  await until(consumer, ({ num_ack_pending }) => num_ack_pending === 0)
  const query = { last_by_subj: subjects.state(seq) }
  assert.isNull(await admin.jsm.streams.getMessage("BELLCAST_LOG", query))
})

it("leaves places to other publishers", { timeout: 60_000 }, async () => {
  await using nats = await startNats({ syncAlways: false })
  await using service = await startService({ natsUrl: nats.url })
  await fill(
    nats.url,
    Array.from({ length: scheduledOfOneMax }, () => idOf("publisher"))
  )
  const publish = (user: string) => call(service.url, "POST", "/channels/news", user, { at })
  const refused = await until(
    () => publish("publisher"),
    ({ status }) => status !== 202
  )
  assert.deepInclude(refused.body, { code: 429, error_code: "too-many-scheduled" })
  assert.equal((await publish("another")).status, 202)
})
