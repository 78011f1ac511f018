// The main job in the running service: one broadcast, decrypted by every live browser, with every
// push accounted for.
import { assert, describe, it } from "vitest"
import { call, finished, join, publish, until } from "../support/client.ts"
import { startPushService } from "../support/push-service.ts"
import { runCli } from "../support/run-cli.ts"
import { vapid } from "../support/service.ts"
import { useService } from "../support/use-service.ts"

const payload = { title: "Grüße", body: "für alle", nested: { b: 1, a: [true, null] } }
const canonical = '{"body":"für alle","nested":{"a":[true,null],"b":1},"title":"Grüße"}'

const addUp = (counts: Record<string, number>) =>
  counts["delivered"]! +
  counts["waiting"]! +
  counts["retrying"]! +
  counts["expired"]! +
  counts["dead"]! +
  counts["gone"]!

const shared = useService({ env: { BELLCAST_PUSH_TIMEOUT_MILLIS: "3000" } })

describe("a broadcast to 300 subscriptions, some of them in trouble", () => {
  it("reaches every live one, removes the gone ones, and reports each outcome", {
    timeout: 90_000
  }, async () => {
    const { nats, service } = shared
    await using push = await startPushService()
    const scripts: Record<number, ReadonlyArray<string>> = { 7: ["hang", "201"] }
    for (let i = 10; i < 15; i++) scripts[i] = ["410"]
    for (let i = 20; i < 25; i++) scripts[i] = ["503", "201"]
    for (let i = 30; i < 35; i++) scripts[i] = ["429 retry-after 1", "201"]
    for (let i = 40; i < 43; i++) scripts[i] = ["413"]
    const agents = Array.from({ length: 300 }, (_, i) =>
      push.subscribe({
        applicationServerKey: vapid.publicKey,
        ...(scripts[i] === undefined ? {} : { script: scripts[i] as never })
      })
    )
    const subscriptions = agents.map(({ subscription }) => subscription)
    await join([service.url], "news", subscriptions)
    // A bystander who subscribed but never registered must hear nothing.
    const bystander = push.subscribe()
    assert.equal(
      (
        await call(service.url, "POST", "/subscriptions", "bystander", {
          data: bystander.subscription
        })
      ).status,
      201
    )

    const broadcast = await publish(service.url, "news", payload)
    const counts = await finished(service.url, "news", broadcast, 40_000)

    assert.deepInclude(counts, {
      accepted: 300,
      delivered: 292,
      gone: 5,
      dead: 3,
      expired: 0,
      retrying: 0,
      waiting: 0
    })
    assert.equal(addUp(counts), counts.accepted)
    agents.forEach(({ received }, i) => {
      const lost = (i >= 10 && i < 15) || (i >= 40 && i < 43)
      assert.deepEqual(
        received.map(({ text }) => text),
        lost ? [] : [canonical],
        `subscription ${i}`
      )
    })
    assert.deepEqual(push.faults, [])
    const sharing = Map.groupBy(
      agents.flatMap(({ received }) => received),
      ({ sender }) => sender
    )
    assert.isAtMost(
      Math.max(...[...sharing.values()].map(({ length }) => length)),
      32,
      "messages that share a key pair"
    )
    assert.deepEqual(bystander.received, [])
    for (const i of [10, 14]) {
      await until(
        () => call(service.url, "GET", "/subscriptions", `user${i}`),
        ({ body }) => body.data.length === 0
      )
    }
    assert.lengthOf((await call(service.url, "GET", "/subscriptions", "user15")).body.data, 1)
    const channel = await until(
      () => call(service.url, "GET", "/channels/news", "user0"),
      ({ body }) => body.data.push === 292
    )
    assert.deepInclude(channel.body.data, { id: "news", registrations: 300, push: 292 })

    const audit = await runCli(["audit", broadcast, "--json"], { BELLCAST_NATS_URL: nats.url })
    assert.equal(audit.code, 0, audit.stderr)
    const { pushes } = JSON.parse(audit.stdout)
    const fates = Object.groupBy(
      pushes as ReadonlyArray<{ fate: string; attempts: number; subscription: string }>,
      ({ fate }) => fate
    )
    assert.deepEqual(
      Object.fromEntries(Object.entries(fates).map(([fate, list]) => [fate, list?.length])),
      {
        delivered: 292,
        gone: 5,
        dead: 3
      }
    )
    assert.equal(pushes.filter(({ attempts }: { attempts: number }) => attempts === 2).length, 11)
    const secrets = [
      subscriptions[0]!.endpoint,
      subscriptions[0]!.keys.auth,
      subscriptions[0]!.keys.p256dh
    ]
    for (const secret of secrets) assert.notInclude(audit.stdout + service.output(), secret)
  })

  it("sends a second broadcast to the subscriptions that remain, and none to a user who left", {
    timeout: 60_000
  }, async () => {
    const { service } = shared
    await using push = await startPushService()
    const agents = Array.from({ length: 4 }, (_, i) =>
      push.subscribe(i === 0 ? { script: ["410"] } : {})
    )
    const path = encodeURIComponent("a channel with spaces, dots. and *")
    const subscriptions = agents.map(({ subscription }) => subscription)
    await join([service.url], path, subscriptions, 24, "other")
    await finished(service.url, path, await publish(service.url, path, { n: 1 }))
    assert.equal(
      (await call(service.url, "DELETE", `/channels/${path}/registration`, "other1")).status,
      202
    )
    const second = await finished(service.url, path, await publish(service.url, path, { n: 2 }))
    assert.deepInclude(second, { accepted: 2, delivered: 2, gone: 0 })
    assert.deepEqual(
      agents.map(({ received }) => received.length),
      [0, 1, 2, 2]
    )
  })
})
