// Scheduled broadcasts in LOG: payloads that do not fit into one message, and starts that
// outlast the loss of WORK.
import { afterAll, assert, beforeAll, it } from "vitest"
import { broadcastPath } from "../support/broadcast-states.ts"
import { call, finishedAt, join, publishAt, until } from "../support/client.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startPushService } from "../support/push-service.ts"
import { runCli } from "../support/run-cli.ts"
import { type Service, startService } from "../support/service.ts"
import { inMillis } from "../support/times.ts"

let nats: TestNats
let service: Service | undefined
const start = async () => {
  service ??= await startService({ natsUrl: nats.url })
  return service
}

beforeAll(async () => {
  nats = await startNats()
})
afterAll(async () => {
  for (const each of [service, nats]) await each?.[Symbol.asyncDispose]()
})

const hourMillis = 3_600_000

const patch = async (url: string, id: string, data: unknown) => {
  const { body, status } = await call(url, "PATCH", broadcastPath(id), "publisher", { data })
  assert.equal(status, 200, JSON.stringify(body))
}

// The first: it empties WORK.
it("is planned again by its start, and not before, after WORK was lost", {
  timeout: 120_000
}, async () => {
  await using push = await startPushService()
  const agent = push.subscribe()
  const rest = await startService({ natsUrl: nats.url, roles: "gateway,projection,fanout,tally" })
  await join([rest.url], "news", [agent.subscription])
  const later = await publishAt(rest.url, "/channels/news", { at: inMillis(hourMillis) })
  const soon = await publishAt(rest.url, "/channels/news", { at: inMillis(1_000) })
  await until(
    () => call(rest.url, "GET", broadcastPath(soon), "publisher"),
    ({ body }) => body.data.shards === 1
  )
  const cancelled = await publishAt(rest.url, "/channels/news", { at: inMillis(hourMillis) })
  await call(rest.url, "PATCH", broadcastPath(cancelled), "publisher", {
    data: { state: "cancelled" }
  })
  await finishedAt(rest.url, broadcastPath(cancelled))
  await rest.stop()
  await using admin = await connectAdmin(nats.url)
  await admin.jsm.streams.purge("BELLCAST_WORK")
  const { code, stderr } = await runCli(["rebuild", "--nats", nats.url])
  assert.equal(code, 0, stderr)
  assert.include(stderr, `broadcasts from ${soon} on are planned that WORK does not have`)
  const { url } = await start()
  const done = await finishedAt(url, broadcastPath(soon))
  assert.deepInclude(done, { state: "finished", accepted: 1, delivered: 1 })
  await patch(url, later, { at: inMillis(0) })
  assert.deepInclude(await finishedAt(url, broadcastPath(later)), { delivered: 1 })
  assert.lengthOf(agent.received, 2)
})

it("sends what it was changed to, in parts, and by a redrive, too", async () => {
  await using push = await startPushService()
  const { url } = await start()
  const agent = push.subscribe({ script: ["400", "201"] })
  const locale = { ...agent.subscription, locale: "de" }
  await join([url], "parts", [locale as typeof agent.subscription], 1, "parts")
  const tags = ["da", "de", "el", "en", "es", "fi", "fr", "it", "nl", "pl"]
  /** 36 KB: more than a message of LOG has. */
  const variants = (n: number) =>
    Object.fromEntries(tags.map((tag) => [tag, { n, text: tag.repeat(1_800) }]))
  const id = await publishAt(url, "/broadcasts", {
    at: inMillis(hourMillis),
    data: { n: 0 },
    data_by_locale: { ...variants(1), "de-AT": { n: 1 } },
    to: { channels: ["parts"] }
  })
  await patch(url, id, { data: { n: 0 }, data_by_locale: variants(2) })
  await patch(url, id, { at: inMillis(0) })
  const first = await finishedAt(url, broadcastPath(id))
  assert.deepInclude(first, { state: "finished", accepted: 1, dead: 1 })
  const { code, stderr, stdout } = await runCli(["redrive", id, "--nats", nats.url])
  assert.equal(code, 0, stderr)
  const again = / as broadcast (\d+)/.exec(stdout)![1]!
  await finishedAt(url, broadcastPath(again))
  assert.deepEqual(
    agent.received.map(({ text }) => JSON.parse(text)),
    [{ n: 2, text: "de".repeat(1_800) }]
  )
})
