// Values that several users share have a bound: a user who fills one stops nobody else.
import { assert, describe, it } from "vitest"
import { endpointHash } from "#domain/subscription/owners.ts"
import { keys } from "#streams/buckets.ts"
import { call } from "../support/client.ts"
import { administer } from "../support/history.ts"
import { startPushService } from "../support/push-service.ts"
import { type Service, startService } from "../support/service.ts"
import { useService } from "../support/use-service.ts"

const full = { code: 507, errno: 201 }

describe("a value of several users that is full", { timeout: 90_000 }, () => {
  const shared = useService({}, { syncAlways: false })

  it("refuses a new endpoint in its page, and nothing else", async () => {
    const { nats, service } = shared
    await using admin = await administer(nats.url)
    await using push = await startPushService()
    const { subscription } = push.subscribe()
    const page = keys.endpointOwners(endpointHash(subscription.endpoint))
    // A client can choose endpoints of one page.
    let n = 0
    const another = () => {
      for (;;) {
        const endpoint = `${subscription.endpoint}/${n++}`
        if (keys.endpointOwners(endpointHash(endpoint)) === page) return endpoint
      }
    }
    const text = (i: number) => page.slice("=endpoints.".length) + String(i).padStart(60, "0")
    const owners = Object.fromEntries(
      Array.from({ length: 999 }, (_, i) => [text(i), "a".repeat(22)])
    )
    const subject = `$KV.bellcast_subscriptions.${page}`
    await admin.nc.request(subject, JSON.stringify({ v: 1, seq: 0, owners }))
    const post = (user: string, endpoint: string) =>
      call(service.url, "POST", "/subscriptions", user, { data: { ...subscription, endpoint } })
    const racers = await Promise.all(
      ["ann", "bob", "cid"].map(async (user) => {
        const endpoint = another()
        return { user, endpoint, ...(await post(user, endpoint)) }
      })
    )
    const first = racers.find(({ status }) => status === 201)!
    const refused = racers.filter((each) => each !== first)
    for (const { body } of refused) assert.deepInclude(body, full)
    const { endpoint, user } = refused[0]!
    assert.deepInclude((await post(user, endpoint)).body, full)
    assert.equal((await post(user, `${endpoint}/elsewhere`)).status, 201)
    // Neither a renewal nor a move makes the page larger.
    assert.equal((await post(first.user, first.endpoint)).status, 200)
    assert.equal((await post("dan", first.endpoint)).status, 201)
    assert.equal((await call(service.url, "DELETE", "/subscriptions", "dan")).status, 200)
    assert.equal((await post(user, endpoint)).status, 201)
  })

  // The last: it ends the service.
  it("refuses a registration that its counts have no room for", async () => {
    const { nats, service } = shared
    await using admin = await administer(nats.url)
    const register = async ({ url }: Service, channel: string) => {
      const of = (name: string) => call(url, "PUT", `/channels/${name}/registration`, "eve")
      return [await of(channel), await of("first")]
    }
    assert.deepEqual(
      (await register(service, "first")).map(({ status }) => status),
      [202, 202]
    )
    await service.kill()
    const counts = Object.entries(await admin.entries()).find(([key]) => key.includes(".=users."))!
    const { users, ...rest } = JSON.parse(counts[1])
    const many = { ...users, ["a".repeat(22)]: Array.from({ length: 500_000 }, () => 1) }
    await admin.nc.request(counts[0], JSON.stringify({ ...rest, users: many }))
    await using next = await startService({ natsUrl: nats.url })
    const [second, first] = await register(next, "second")
    assert.deepInclude(second!.body, full)
    assert.equal(first!.status, 202)
  })
})
