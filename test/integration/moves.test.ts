// A browser that several users store belongs to the last of them: nobody else gets its pushes,
// whoever stores it at the same moment.
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { endpointHash } from "#domain/subscription/owners.ts"
import { pushesOf } from "../support/audit.ts"
import { call, finished, publish, until } from "../support/client.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { type PushService, startPushService } from "../support/push-service.ts"
import { runCli } from "../support/run-cli.ts"
import { type Service, startService } from "../support/service.ts"
import type { SubscriptionJson } from "../support/user-agent.ts"
import { tokenOf } from "../support/users.ts"

let nats: TestNats
let push: PushService
let one: Service
let other: Service

beforeAll(async () => {
  nats = await startNats({ syncAlways: false })
  push = await startPushService()
  one = await startService({ natsUrl: nats.url })
  other = await startService({ natsUrl: nats.url, roles: "gateway" })
}, 60_000)
afterAll(async () => {
  for (const each of [one, other, push, nats]) await each?.[Symbol.asyncDispose]()
})

const post = (user: string, data: SubscriptionJson, by = one) =>
  call(by.url, "POST", "/subscriptions", user, { data })
const stores = async (...what: Parameters<typeof post>) =>
  assert.equal((await post(...what)).status, 201)
const joins = async (channel: string, ...users: ReadonlyArray<string>) => {
  for (const user of users) {
    const { status } = await call(one.url, "PUT", `/channels/${channel}/registration`, user)
    assert.equal(status, 202)
  }
}
const listOf = (user: string) => call(other.url, "GET", "/subscriptions", user)
const endpointsOf = async (user: string) =>
  (await listOf(user)).body.data.map(({ endpoint }: SubscriptionJson) => endpoint)
/** The timestamp in the ETag of a user's list. */
const timestampOf = async (user: string) =>
  Number(/^"(\d+)"$/.exec((await listOf(user)).headers.get("etag")!)![1])
const withOtherKeys = ({ endpoint }: SubscriptionJson) => ({
  ...push.subscribe().subscription,
  endpoint
})

describe("a browser that another user stores", { timeout: 60_000 }, () => {
  it("gets each broadcast once, as the user who stored it last", async () => {
    const { received, subscription } = push.subscribe()
    await stores("ann", subscription)
    await joins("once", "ann", "bob")
    await finished(one.url, "once", await publish(one.url, "once", { n: 1 }))
    await stores("bob", subscription, other)
    assert.deepEqual(await endpointsOf("ann"), [])
    const second = await publish(one.url, "once", { n: 2 })
    assert.deepInclude(await finished(one.url, "once", second), { accepted: 1, delivered: 1 })
    for (const user of ["ann", "bob"]) {
      const before = await timestampOf("ann")
      await stores(user, subscription)
      // The list of the earlier owner gets its timestamp a moment after the move.
      await until(
        () => timestampOf("ann"),
        (timestamp) => timestamp > before
      )
    }
    const third = await publish(one.url, "once", { n: 3 })
    await finished(one.url, "once", third)
    assert.deepEqual(
      received.map(({ text }) => text),
      ['{"n":1}', '{"n":2}', '{"n":3}']
    )
    assert.lengthOf(await pushesOf(nats.url, third), 1)
    const { stdout } = await runCli(["audit", "--user", tokenOf("ann"), "--nats", nats.url])
    assert.lengthOf(stdout.match(/^moved away +20\S+Z +- +\w{12} +-$/gm) ?? [], 2)
  })

  it("is not taken with other keys, and says so without asking to repeat", async () => {
    const { subscription } = push.subscribe()
    await stores("cid", subscription)
    for (const method of ["POST", "PUT"]) {
      const id = method === "PUT" ? `/${endpointHash(subscription.endpoint)}` : ""
      const data = withOtherKeys(subscription)
      const refused = await call(one.url, method, `/subscriptions${id}`, "dan", { data })
      assert.deepInclude(refused.body, { code: 409, errno: 123 })
      assert.isNull(refused.headers.get("retry-after"))
    }
    assert.deepEqual(await endpointsOf("dan"), [])
    assert.deepEqual(await endpointsOf("cid"), [subscription.endpoint])
    // An endpoint that its user removed is free for anybody, with any keys.
    assert.equal((await call(one.url, "DELETE", "/subscriptions", "cid")).status, 200)
    await stores("dan", withOtherKeys(subscription))
  })

  it("ends what waits for the earlier user as moved, and nothing of the later", async () => {
    const { attempts, received, subscription } = push.subscribe({
      script: ["503 retry-after 3", "201"]
    })
    await stores("eve", subscription)
    await joins("waits", "eve", "fay")
    const broadcast = await publish(one.url, "waits", { n: 1 })
    await until(
      async () => attempts.length,
      (count) => count === 1
    )
    await stores("fay", subscription)
    assert.deepInclude(await finished(one.url, "waits", broadcast), { accepted: 1, gone: 1 })
    assert.deepEqual(
      (await pushesOf(nats.url, broadcast)).map(({ fate, reason }) => [fate, reason]),
      [["gone", "moved"]]
    )
    assert.lengthOf(received, 0)
    assert.deepEqual(await endpointsOf("fay"), [subscription.endpoint])
  })

  it("has one user when several store it at the same moment, with any keys", async () => {
    const { subscription } = push.subscribe()
    const users = Array.from({ length: 12 }, (_, i) => `racer${i}`)
    const answers = await Promise.all(
      users.map((user, i) =>
        post(user, i % 3 === 2 ? withOtherKeys(subscription) : subscription, i % 2 ? one : other)
      )
    )
    const lists = await Promise.all(users.map((user) => endpointsOf(user)))
    assert.lengthOf(lists.flat(), 1)
    for (const [i, { body, status }] of answers.entries()) {
      assert.oneOf(status, [201, 409])
      if (status === 409) assert.equal(body.errno, 123)
      if (lists[i]!.length === 1) assert.equal(status, 201)
    }
  })

  it("is not given back by a restore of what the earlier user lost", async () => {
    const { subscription } = push.subscribe({ script: ["410", "201"] })
    await stores("ida", subscription)
    await joins("lost", "ida")
    const from = new Date(Date.now() - 1_000).toISOString()
    await finished(one.url, "lost", await publish(one.url, "lost", { n: 1 }))
    await until(
      () => endpointsOf("ida"),
      (endpoints) => endpoints.length === 0
    )
    await stores("joe", subscription)
    const { stdout } = await runCli(["restore", "--from", from, "--nats", nats.url])
    assert.match(stdout, /1 was not: other users have stored them since/)
    assert.deepEqual(await endpointsOf("joe"), [subscription.endpoint])
  })

  it("is taken by one user 30 times in an hour", async () => {
    const browsers = Array.from({ length: 31 }, () => push.subscribe().subscription)
    for (const [i, each] of browsers.entries()) {
      await stores("gus", each)
      const { headers, status } = await post("hal", each)
      assert.equal(status, i < 30 ? 201 : 429)
      if (status === 429) assert.match(headers.get("retry-after")!, /^\d+$/)
    }
    assert.deepEqual(await endpointsOf("gus"), [browsers[30]!.endpoint])
  })
})
