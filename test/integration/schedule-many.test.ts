// The bound on broadcasts that wait for their start (contract 2.6).
import { jetstream } from "@nats-io/jetstream"
import { headers } from "@nats-io/transport-node"
import { Effect } from "effect"
import { assert, it } from "vitest"
import { scheduledMax } from "#domain/broadcast-start.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { channelToken } from "#streams/tokens.ts"
import { changeState } from "../support/broadcast-states.ts"
import { call, until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startService } from "../support/service.ts"

const at = new Date(Date.now() + 20 * 24 * 3_600_000).toISOString()
/** Above the sequences of LOG, which belong to other messages. */
const firstId = 1_000_000

/** Appends that so many broadcasts wait, as the planner does. */
const fill = (natsUrl: string, count: number) =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const append = (i: number) => {
      const broadcast = firstId + i
      const body = { broadcast, channel: channelToken("news"), run: 0, by: "x", at: Date.now() }
      return log.append("log", {
        subject: subjects.state(broadcast),
        type: "broadcast.scheduled/1",
        body: { ...body, schedule: { at } }
      })
    }
    const all = Array.from({ length: count }, (_, i) => i)
    yield* Effect.forEach(all, append, { concurrency: 256, discard: true })
  }).pipe(Effect.provide(natsLayer({ url: natsUrl, name: "fill" })), Effect.runPromise)

it("refuses one more that would wait, and takes it when there is room again", {
  timeout: 60_000
}, async () => {
  await using nats = await startNats({ syncAlways: false })
  await using service = await startService({ natsUrl: nats.url })
  const { url } = service
  const waiting: Array<string> = []
  const publish = async (body: object, path = "/channels/news") => {
    const answer = await call(url, "POST", path, "publisher", body)
    if (answer.status === 202 && "at" in body) waiting.push(answer.body.id)
    return answer
  }
  assert.equal((await publish({ at })).status, 202)
  await fill(nats.url, scheduledMax - 1)
  const direct = [{ at, to: { channels: ["news"] } }, "/broadcasts"] as const
  for (const [body, path] of [[{ at }, undefined] as const, direct]) {
    const refused = await until(
      () => publish(body, path),
      ({ status }) => status !== 202
    )
    assert.deepInclude(refused.body, { code: 429, errno: 117 })
    assert.match(refused.headers.get("retry-after") ?? "", /^\d+$/)
  }
  assert.equal((await publish({})).status, 202)

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
})
