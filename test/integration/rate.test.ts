// Broadcasts with a rate: over the whole service, first attempts and retries together.
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { heldMillis, shown, untilShown } from "../support/broadcast-states.ts"
import { call, finishedAt, publishAt } from "../support/client.ts"
import { fillChannels } from "../support/fill.ts"
import { startNats } from "../support/nats.ts"
import { type PushService, startPushService } from "../support/push-service.ts"
import { elapsed, unchanged } from "../support/quiet.ts"
import { type Service, startService } from "../support/service.ts"
import { trustingEnvironment } from "../support/tls.ts"
import { useService } from "../support/use-service.ts"

/** When the push service read the pushes, in order. */
const receiptsOf = ({ agents }: PushService) =>
  agents.flatMap(({ attempts }) => attempts.map(({ at }) => at)).sort((a, b) => a - b)

/** The most receipts within so many milliseconds. */
const mostWithin = (receipts: ReadonlyArray<number>, millis: number): number => {
  let most = 0
  for (let first = 0, last = 0; last < receipts.length; last++) {
    while (receipts[last]! - receipts[first]! >= millis) first++
    most = Math.max(most, last - first + 1)
  }
  return most
}

const isSent = (count: number) => (view: Record<string, number>) =>
  view["delivered"]! + view["retrying"]! >= count

describe("a broadcast with a rate, of several workers", { timeout: 120_000 }, () => {
  const shared = useService({ roles: "gateway,projection,fanout,tally" })
  const work = () => startService({ natsUrl: shared.nats.url, roles: "delivery" })
  let first: Service
  let second: Service
  beforeAll(async () => {
    first = await work()
    second = await work()
  })
  afterAll(async () => {
    for (const each of [first, second]) await each?.[Symbol.asyncDispose]()
  })

  it("is sent by two workers at this rate, retries included, and others meanwhile", async () => {
    const { nats, service: gateway } = shared
    await using push = await startPushService()
    const once = { script: ["503 retry-after 1", "201"] }
    const agents = Array.from({ length: 500 }, (_, i) => push.subscribe(i % 10 === 0 ? once : {}))
    await fillChannels(nats.url, [
      { name: "news", subscriptions: agents.map(({ subscription }) => subscription) },
      { name: "few", subscriptions: [push.subscribe().subscription] }
    ])
    const began = Date.now()
    const id = await publishAt(gateway.url, "/channels/news", { data: { n: 1 }, rate: 50 })
    const other = await publishAt(gateway.url, "/channels/few", { data: { n: 2 } })
    await finishedAt(gateway.url, `/broadcasts/${other}`, "publisher")
    assert.deepInclude(await shown(gateway.url, id), { state: "running", rate: 50 })
    assert.isUndefined((await shown(gateway.url, other)).rate)
    const done = await finishedAt(gateway.url, `/broadcasts/${id}`, "publisher", 60_000)
    assert.deepInclude(done, { accepted: 500, delivered: 500, rate: 50 })
    const receipts = receiptsOf(push)
    assert.lengthOf(receipts, 551)
    const seconds = (receipts.at(-1)! - began) / 1_000
    const most = mostWithin(receipts, 5_000)
    process.stdout.write(`551 pushes in ${seconds} s, at most ${most} in 5 s\n`)
    // A busy machine reads some pushes late, and those after them in time.
    assert.isAtMost(most, 5 * 50 * 1.3)
    // 551 pushes take 11 s at this rate.
    assert.isAtLeast(seconds, 9)
  })

  // The last: it ends both workers.
  it("is paused, goes on, and is cancelled at once, and a stop does not wait for it", async () => {
    const { nats, service: gateway } = shared
    await using push = await startPushService()
    // The other one stops.
    await first.kill()
    const subscriptions = Array.from({ length: 60 }, () => push.subscribe().subscription)
    await fillChannels(nats.url, [{ name: "paused", subscriptions }])
    const id = await publishAt(gateway.url, "/channels/paused", { data: { n: 1 }, rate: 2 })
    const path = `/broadcasts/${id}`
    const change = (state: string) =>
      call(gateway.url, "PATCH", path, "publisher", { data: { state } })
    await untilShown(gateway.url, id, isSent(2))
    assert.equal((await change("paused")).status, 200)
    await untilShown(gateway.url, id, ({ state }) => state === "paused")
    await elapsed(heldMillis)
    const atPause = await unchanged(() => push.requests, 2_000)
    assert.equal((await change("running")).status, 200)
    await untilShown(gateway.url, id, isSent(atPause + 2))
    const stopping = performance.now()
    await second.stop()
    assert.isBelow(performance.now() - stopping, 10_000)
    await using _next = await work()
    const before = push.requests
    await untilShown(gateway.url, id, isSent(before + 2))
    assert.equal((await change("cancelled")).status, 200)
    const done = await finishedAt(gateway.url, path, "publisher")
    assert.deepInclude(done, { accepted: 60, delivered: push.requests })
    assert.equal(done["cancelled"], 60 - push.requests)
  })
})

describe("a broadcast with a rate", { timeout: 120_000 }, () => {
  const shared = useService()

  it("is sent at the rate that it had at its start", async () => {
    const { nats, service } = shared
    await using push = await startPushService()
    const subscriptions = Array.from({ length: 20 }, () => push.subscribe().subscription)
    await fillChannels(nats.url, [{ name: "timed", subscriptions }])
    const at = new Date(Date.now() + 3_000).toISOString()
    const id = await publishAt(service.url, "/channels/timed", { data: { n: 1 }, rate: 1_000, at })
    const path = `/broadcasts/${id}`
    const changed = await call(service.url, "PATCH", path, "publisher", { data: { rate: 5 } })
    assert.deepInclude(changed.body.data, { state: "scheduled", rate: 5 })
    const done = await finishedAt(service.url, path, "publisher")
    assert.deepInclude(done, { delivered: 20, rate: 5 })
    const receipts = receiptsOf(push)
    // 20 pushes take 3.8 s at this rate. The first one may be late.
    assert.isAtLeast(receipts.at(-1)! - receipts[0]!, 2_500)
  })

  it("goes on at once when its worker was frozen for longer than turns stay unused", async () => {
    const { nats, service } = shared
    await using push = await startPushService()
    const subscriptions = Array.from({ length: 450 }, () => push.subscribe().subscription)
    await fillChannels(nats.url, [{ name: "frozen", subscriptions }])
    const id = await publishAt(service.url, "/channels/frozen", { data: { n: 1 }, rate: 150 })
    for (const sent of [75, 150, 225]) {
      await push.waitFor(({ counts }) => counts.total >= sent, 20_000)
      service.process.kill("SIGSTOP")
      await elapsed(350)
      service.process.kill("SIGCONT")
    }
    await finishedAt(service.url, `/broadcasts/${id}`, "publisher")
    const receipts = receiptsOf(push)
    assert.lengthOf(receipts, 450)
    const gaps = receipts.slice(1).map((at, i) => at - receipts[i]!)
    process.stdout.write(`longest gap ${Math.max(...gaps)} ms\n`)
    assert.isBelow(Math.max(...gaps), 5_000)
  })

  it("keeps a rate of one push a second over three workers", async () => {
    const { nats, service } = shared
    await using push = await startPushService()
    const worker = () => startService({ natsUrl: nats.url, roles: "delivery" })
    await using _second = await worker()
    await using _third = await worker()
    const subscriptions = Array.from({ length: 10 }, () => push.subscribe().subscription)
    await fillChannels(nats.url, [{ name: "shared", subscriptions }])
    const id = await publishAt(service.url, "/channels/shared", { data: { n: 1 }, rate: 1 })
    await finishedAt(service.url, `/broadcasts/${id}`, "publisher", 60_000)
    const receipts = receiptsOf(push)
    process.stdout.write(`${receipts.map((at) => at - receipts[0]!).join(" ")}\n`)
    // One push may be late by as much as the next one is not.
    assert.isAtMost(mostWithin(receipts, 3_000), 5)
    assert.isAtLeast(receipts.at(-1)! - receipts[0]!, 7_500)
  })

  it("sends no burst when a connection opens late, and each push with its payload", async () => {
    await using nats = await startNats()
    const at = { tls: true, http2: true, host: "localhost", roundTripMillis: 1_600 } as const
    await using push = await startPushService(at)
    await using service = await startService({ natsUrl: nats.url, env: trustingEnvironment })
    const count = 80
    const agents = Array.from({ length: count }, () => push.subscribe())
    const subscriptions = agents.map(({ subscription }) => subscription)
    await fillChannels(nats.url, [{ name: "far", subscriptions }])
    const id = await publishAt(service.url, "/channels/far", { data: { n: 1 }, rate: 40 })
    const done = await finishedAt(service.url, `/broadcasts/${id}`, "publisher", 60_000)
    assert.deepInclude(done, { accepted: count, delivered: count })
    // The connection takes three seconds: 40 pushes waited for it, and left within 25 ms.
    const receipts = receiptsOf(push)
    assert.isBelow(mostWithin(receipts, 100), 25)
    const texts = agents.flatMap(({ received }) => received.map(({ text }) => text))
    assert.deepEqual(
      texts,
      Array.from({ length: count }, () => '{"n":1}')
    )
  })

  it("leaves handlers and permits to others, however many such broadcasts wait", async () => {
    await using nats = await startNats()
    await using push = await startPushService()
    await using service = await startService({
      natsUrl: nats.url,
      env: { BELLCAST_UNRECORDED_PUSHES_MAX: "8", BELLCAST_SHARDS_IN_FLIGHT: "2" }
    })
    const subscriptions = Array.from({ length: 60 }, () => push.subscribe().subscription)
    await fillChannels(nats.url, [{ name: "news", subscriptions }])
    const limited: Array<string> = []
    // More than the 32 that a process handles at a time.
    for (let n = 0; n < 40; n++)
      limited.push(await publishAt(service.url, "/channels/news", { data: { n }, rate: 1 }))
    const id = await publishAt(service.url, "/channels/news", { data: { n: "other" } })
    const done = await finishedAt(service.url, `/broadcasts/${id}`, "publisher")
    assert.deepInclude(done, { delivered: 60 })
    for (const each of limited)
      assert.deepInclude(await shown(service.url, each), { state: "running" })
  })
})
