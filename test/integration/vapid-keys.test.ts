// The VAPID keys of a running service change without losing a subscription; problems of one key do
// not affect others.
import { assert, describe, it } from "vitest"
import { call, finished, publish, until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { refuse } from "../support/push-script.ts"
import { startPushService } from "../support/push-service.ts"
import { secretEnvironment, startService, vapid } from "../support/service.ts"
import { enter, everythingIn, listed, received, rotate } from "../support/vapid-keys.ts"

const first = vapid.publicKey

describe("a rotation", () => {
  it("reaches former and new subscribers while a worker with the former settings still runs", {
    timeout: 180_000
  }, async () => {
    await using nats = await startNats()
    await using push = await startPushService()
    const env = { ...secretEnvironment, BELLCAST_NATS_URL: nats.url }
    await using former = await startService({ natsUrl: nats.url })
    const before = push.subscribe({ applicationServerKey: first })
    await enter(former.url, "before", before)

    const after = await rotate(env)
    const second = after["BELLCAST_VAPID_PUBLIC_KEY"]!
    assert.notEqual(second, first)
    await using service = await startService({ natsUrl: nats.url, env: after })
    assert.equal(
      (await call(service.url, "GET", "/vapid-public-key")).body.data.vapid_public_key,
      second
    )
    const current = push.subscribe({ applicationServerKey: second })
    const stale = push.subscribe({ applicationServerKey: first })
    await enter(service.url, "current", current)
    await enter(service.url, "stale", stale, { vapid_public_key: first })
    // Replaced without a word about the key: the endpoint is the same, so the key is.
    const { id } = (await call(service.url, "GET", "/subscriptions", "stale")).body.data[0]
    assert.equal(
      (
        await call(service.url, "PUT", `/subscriptions/${id}`, "stale", {
          data: stale.subscription
        })
      ).status,
      200
    )

    // Several, so that both workers get some: the former one lacks the second key and defers its
    // pushes to the other.
    for (let n = 1; n <= 4; n++) {
      const counts = await finished(service.url, "news", await publish(service.url, "news", { n }))
      assert.deepInclude(counts, { accepted: 3, delivered: 3 })
    }
    assert.deepEqual(received([before, current, stale]), [4, 4, 4])
    assert.deepEqual(push.faults, [])
    const list = await listed(after)
    assert.deepEqual(
      list.map(({ publicKey, state, subscriptions }) => [publicKey, state, subscriptions]),
      [
        [first, "former", 2],
        [second, "current", 1]
      ]
    )
    for (const { created } of list)
      assert.isAtMost(Math.abs(Date.now() - Date.parse(created!)), 180_000)

    const told = [former.output(), service.output(), await everythingIn(nats.url)].join("\n")
    assert.include(told, second)
    for (const pair of [env, after]) assert.notInclude(told, pair["BELLCAST_VAPID_PRIVATE_KEY"]!)
    assert.notMatch(told, /vapid t=/)
  })

  it("reaches one who subscribed with a former key and did not say so, and remembers it", {
    timeout: 180_000
  }, async () => {
    await using nats = await startNats()
    await using push = await startPushService()
    const env = await rotate(await rotate({ ...secretEnvironment, BELLCAST_NATS_URL: nats.url }))
    await using service = await startService({ natsUrl: nats.url, env })
    const silent = push.subscribe({ applicationServerKey: first })
    const current = push.subscribe({ applicationServerKey: env["BELLCAST_VAPID_PUBLIC_KEY"]! })
    await enter(service.url, "current", current)
    await finished(service.url, "news", await publish(service.url, "news", { n: 1 }))
    await enter(service.url, "silent", silent)
    const counts = await finished(service.url, "news", await publish(service.url, "news", { n: 2 }))
    assert.deepInclude(counts, { accepted: 2, delivered: 2, gone: 0 })
    assert.deepEqual(received([silent, current]), [1, 2])
    assert.lengthOf((await call(service.url, "GET", "/subscriptions", "silent")).body.data, 1)
    // Found out once, and noted: the next push is signed with the right key at once.
    await until(
      () => listed(env),
      ([oldest]) => oldest!.subscriptions === 1
    )
    assert.lengthOf(push.faults, 2)
    await finished(service.url, "news", await publish(service.url, "news", { n: 3 }))
    assert.deepEqual(received([silent, current]), [2, 3])
    assert.lengthOf(push.faults, 2)
  })

  it("keeps the troubles of one key from the pushes signed with another", {
    timeout: 180_000
  }, async () => {
    await using nats = await startNats()
    await using push = await startPushService()
    const env = await rotate({ ...secretEnvironment, BELLCAST_NATS_URL: nats.url })
    await using service = await startService({
      natsUrl: nats.url,
      env: { ...env, BELLCAST_BREAKER_OPEN_MILLIS: "3600000" }
    })
    const refused = Array.from({ length: 10 }, () =>
      push.subscribe({ applicationServerKey: first })
    )
    for (const agent of refused) agent.answerBy(() => refuse(403, "BadJwtToken"))
    const taken = push.subscribe({ applicationServerKey: env["BELLCAST_VAPID_PUBLIC_KEY"]! })
    for (const [i, agent] of refused.entries())
      await enter(service.url, `refused${i}`, agent, { vapid_public_key: first })
    const opened = await publish(service.url, "news", { n: 1 })
    await until(
      () => call(service.url, "GET", `/channels/news/broadcasts/${opened}`, "publisher"),
      ({ body }) => body.data.retrying === 10
    )
    assert.match(service.output(), /refuses our credentials/)
    await enter(service.url, "taken", taken)
    const broadcast = await publish(service.url, "news", { n: 2 })
    const { body } = await until(
      () => call(service.url, "GET", `/channels/news/broadcasts/${broadcast}`, "publisher"),
      ({ body }) => body.data.retrying === 10 && body.data.waiting === 0
    )
    assert.deepInclude(body.data, { accepted: 11, delivered: 1, retrying: 10 })
    assert.equal(taken.received.length, 1)
  })
})
