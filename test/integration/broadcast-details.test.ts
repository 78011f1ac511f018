// The outcomes of a broadcast, by reason, push service, language and minute: over HTTP, in LOG, and
// after a rebuild.
import { assert, it } from "vitest"
import { administer } from "#test/history.ts"
import { call, finished, join, publish, publishAt, until } from "../support/client.ts"
import { startPushService } from "../support/push-service.ts"
import { runCli } from "../support/run-cli.ts"
import { trustingEnvironment } from "../support/tls.ts"
import { useService } from "../support/use-service.ts"

const shared = useService({ env: trustingEnvironment }, { syncAlways: false })

it("shows counts by reason and push service, receipts, and how long answers took", {
  timeout: 60_000
}, async () => {
  const { service } = shared
  await using push = await startPushService()
  const scripts = [["slow 200"], ["slow 200"], ["slow 200"], ["410"], ["400"], ["503", "slow 600"]]
  const browsers = scripts.map((script) => push.subscribe({ script }).subscription)
  await join([service.url], "news", browsers)
  const id = await publish(service.url, "news", { n: 1 })
  await finished(service.url, "news", id, 30_000)
  const path = `/channels/news/broadcasts/${id}`
  const { data } = (await call(service.url, "GET", path, "publisher")).body
  assert.deepEqual(data.reasons, { accepted: 4, gone: 1, refused: 1 })
  assert.deepInclude(data, { done_share: 1, retries: [] })
  assert.notProperty(data, "locales")
  const { p50_millis, p99_millis, ...fates } = data.push_services.other
  assert.deepEqual(fates, {
    ...{ delivered: 4, retrying: 0, expired: 0, dead: 1, gone: 1, cancelled: 0 }
  })
  assert.deepEqual(Object.keys(data.push_services), ["other"])
  // Seven answers: three quick ones, three after 200 ms, one after 600 ms.
  assert.deepEqual([data.p50_millis, data.p99_millis], [p50_millis, p99_millis])
  assert.isAtLeast(p50_millis, 180)
  assert.isAtMost(p50_millis, p99_millis)
  assert.isAtLeast(p99_millis, 540)
  assert.isAtLeast(data.first_delivered_at, data.accepted_at + 200)
  assert.isAtLeast(data.last_delivered_at, data.first_delivered_at + 400)
  assert.isAtMost(data.last_delivered_at, data.last_modified)
  const [listed] = (await call(service.url, "GET", "/channels/news/broadcasts", "publisher")).body
    .data
  assert.notProperty(listed, "reasons")
  assert.equal(listed.done_share, 1)
  const timeline = await call(service.url, "GET", `/broadcasts/${id}/timeline`, "publisher")
  const { minutes, points } = timeline.body.data
  assert.equal(minutes, 1)
  const minute = (at: number) => Math.floor(at / 60_000) * 60_000
  assert.equal(points[0].at, minute(Math.min(...points.map((each: Point) => each.at))))
  assert.isAtLeast(points[0].at, minute(data.accepted_at))
  const sums = { delivered: 4, expired: 0, dead: 1, gone: 1, cancelled: 0 }
  for (const [fate, sum] of Object.entries(sums))
    assert.equal(
      points.reduce((all: number, point: Point) => all + point[fate]!, 0),
      sum
    )
})

type Point = { readonly at: number } & Readonly<Record<string, number>>

it.for([
  ["one", ["201"]],
  // The topic is refused, and the push sent again without it.
  ["two", ['400 {"reason":"BadWebPushTopic"}', "201"]]
] as const)(
  "counts from when a connection took the push how long %s answers took",
  {
    timeout: 60_000
  },
  async ([channel, script]) => {
    const { service } = shared
    // Two round trips for the connection, and one for each answer.
    const roundTripMillis = 1_600
    const at = { tls: true, http2: true, host: "localhost" } as const
    await using push = await startPushService({ ...at, roundTripMillis })
    await join([service.url], channel, [push.subscribe({ script }).subscription], 24, channel)
    const id = await publish(service.url, channel, { n: 1 }, { topic: "t" })
    const { p50_millis } = await finished(service.url, channel, id, 30_000)
    assert.isAtLeast(p50_millis, 0.9 * script.length * roundTripMillis)
    assert.isBelow(p50_millis, (script.length + 1) * roundTripMillis)
  }
)

// The last: it stops the service.
it("is made again by a rebuild, byte for byte", { timeout: 60_000 }, async () => {
  const { nats, service } = shared
  await using admin = await administer(nats.url)
  await using push = await startPushService()
  const scripts = [["slow 50"], ["410"], ["400"], ["503", "429 retry-after 600"]]
  const browsers = scripts.map((script, i) => ({
    ...push.subscribe({ script }).subscription,
    ...(i !== 1 && { locale: "de" })
  }))
  await join([service.url], "rebuilt", browsers, 24, "rebuilt")
  const data = { n: 1 }
  const id = await publishAt(service.url, "/channels/rebuilt", {
    data,
    data_by_locale: { de: data }
  })
  const progress = async () => (await admin.entries())[`$KV.bellcast_broadcasts.${id}`] ?? ""
  const reasons = ["accepted", "gone", "refused", "throttled"]
  const before = await until(progress, (text) =>
    reasons.every((reason) => text.includes(`"${reason}":1`))
  )
  const shown = (await call(service.url, "GET", `/broadcasts/${id}`, "publisher")).body.data
  assert.equal(shown.done_share, 0.75)
  const [{ until: end, ...retry }] = shown.retries
  assert.deepEqual(retry, { reason: "throttled", pushes: 1 })
  assert.isAbove(end, Date.now() + 500_000)
  assert.isBelow(end, shown.expires_at)
  const none = { delivered: 0, retrying: 0, expired: 0, dead: 0, gone: 0, cancelled: 0 }
  assert.deepEqual(shown.locales, {
    de: { ...none, delivered: 1, retrying: 1, dead: 1 },
    data: { ...none, gone: 1 }
  })
  const cli = await runCli(["broadcast", "show", id, "--nats", nats.url])
  const last = new Date(end).toISOString()
  assert.include(cli.stdout, `practically done      75 %, 1 are tried again until ${last}\n`)
  assert.match(cli.stdout, /^TRIED AGAIN FOR {2}PUSHES {2}UNTIL\nthrottled +1 +2/m)
  assert.match(
    cli.stdout,
    /^LOCALE {2}DELIVERED .*\nde +1 +1 +0 +1 +0 +0\ndata +0 +0 +0 +0 +1 +0$/m
  )
  await service.stop()
  assert.include(before, '"reasons":{')
  const { code, stderr } = await runCli(["rebuild", "--nats", nats.url])
  assert.equal(code, 0, stderr)
  assert.equal(await progress(), before)
})
