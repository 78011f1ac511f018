// One client that sends or stores too much gets 429; others, and probes, are served.
import { afterAll, assert, beforeAll, it } from "vitest"
import { type Answer, call } from "../support/client.ts"
import { open, request } from "../support/hostile/socket.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { type PushService, startPushService } from "../support/push-service.ts"
import { type Service, startService } from "../support/service.ts"

const perUser = 4
const perAddress = 12
const changesPerUser = 2
const changesPerAddress = 3
/** Bytes of a subscription that counts as more than two changes, and as fewer than three. */
const largeBytes = 1_500

let nats: TestNats
let push: PushService
let service: Service

beforeAll(async () => {
  nats = await startNats({ syncAlways: false })
  push = await startPushService()
  service = await startService({
    natsUrl: nats.url,
    env: {
      BELLCAST_TRUSTED_PROXIES: "127.0.0.1",
      BELLCAST_REQUESTS_PER_USER_PER_MINUTE_MAX: String(perUser),
      BELLCAST_REQUESTS_PER_ADDRESS_PER_MINUTE_MAX: String(perAddress),
      BELLCAST_CHANGES_PER_USER_PER_HOUR_MAX: String(changesPerUser),
      BELLCAST_CHANGES_PER_ADDRESS_PER_HOUR_MAX: String(changesPerAddress)
    }
  })
})
afterAll(async () => {
  for (const each of [service, push, nats]) await each?.[Symbol.asyncDispose]()
})

const from = (address: string) => ({ "x-forwarded-for": address })
const read = (user: string | undefined, address: string, path = "/subscriptions") =>
  call(service.url, "GET", path, user, undefined, from(address))

it("limits a user, from whatever address", async () => {
  for (let i = 0; i < perUser; i++) assert.equal((await read("ann", `192.0.2.${i}`)).status, 200)
  const refused = await read("ann", "192.0.2.9")
  assert.deepInclude(refused.body, { code: 429, error_code: "too-many-requests" })
  const seconds = Number(refused.headers.get("retry-after"))
  assert.isAtLeast(seconds, 1)
  assert.isAtMost(seconds, 60 / perUser)
  assert.equal((await read("bob", "192.0.2.9")).status, 200)
})

it("limits an address, whoever sends and whatever the path, but for probes", async () => {
  const address = "198.51.100.7"
  const paths = ["/", "/nothing"]
  for (let i = 0; i < perAddress; i++)
    assert.notEqual((await read(undefined, address, paths[i % 2]!)).status, 429)
  for (const path of ["/", "/nothing", "/subscriptions"])
    assert.equal((await read("cid", address, path)).status, 429, path)
  for (const path of ["/__lbheartbeat__", "/__heartbeat__"])
    assert.notEqual((await read(undefined, address, path)).status, 429, path)
  assert.equal((await read("cid", "198.51.100.8")).status, 200)
})

it("limits an address that sends methods which Node.js does not know, and no other", async () => {
  const statusOf = async (method: string, from: string) => {
    const client = await open({ port: service.port, from })
    client.socket.write(request(`${method} /v1/tea`, []))
    await client.answered(10_000)
    client.socket.destroy()
    return client.received().split(" ")[1]
  }
  for (const method of ["BREW", "CONNECT"]) {
    const address = method === "BREW" ? "127.0.0.2" : "127.0.0.3"
    for (let i = 0; i < perAddress; i++) assert.equal(await statusOf(method, address), "404")
    assert.equal(await statusOf(method, address), "429")
    assert.equal(await statusOf("GET", address), "429")
    assert.equal(await statusOf(method, "127.0.0.4"), "404")
  }
})

it("counts the entries of a batch like requests", async () => {
  const batch = async (user: string, address: string) => {
    const requests = Array(perAddress + 2).fill({ path: "/v1/subscriptions" })
    const { body } = await call(service.url, "POST", "/batch", user, { requests }, from(address))
    return (body.responses as Array<{ status: number }>).map(({ status }) => status)
  }
  const statuses = await batch("dan", "203.0.113.1")
  assert.deepEqual(statuses.slice(0, perUser), Array(perUser).fill(200))
  assert.isTrue(statuses.slice(perUser).every((status) => status === 429))
  // The batch itself was one request of the address, and its entries were others.
  assert.equal((await read("eve", "203.0.113.1")).status, 429)
})

it("limits what a user and an address store, and not what is there or is removed", async () => {
  const from = { "x-forwarded-for": "203.0.113.9" }
  const change = (method: string, user: string, channel: string) =>
    call(service.url, method, `/channels/${channel}/registration`, user, undefined, from)
  const assertRefused = ({ body, headers, status }: Answer, max: number) => {
    assert.deepEqual([status, body.error_code], [429, "too-many-changes"])
    const seconds = Number(headers.get("retry-after"))
    assert.isAtMost(seconds, 3_600 / max)
    assert.isAbove(seconds, 3_600 / max - 60)
  }
  for (const channel of ["a", "b"]) assert.equal((await change("PUT", "fay", channel)).status, 202)
  assertRefused(await change("PUT", "fay", "c"), changesPerUser)
  assert.equal((await change("PUT", "fay", "a")).status, 202)
  assert.equal((await change("PUT", "gus", "a")).status, 202)
  for (let i = 0; i < changesPerUser; i++)
    assertRefused(await change("PUT", "hal", "a"), changesPerAddress)
  // A change that was refused for the address is none of the user.
  const elsewhere = { "x-forwarded-for": "203.0.113.10" }
  const path = "/channels/a/registration"
  assert.equal((await call(service.url, "PUT", path, "hal", undefined, elsewhere)).status, 202)
  const requests = [{ method: "PUT", path: "/v1/channels/b/registration" }]
  const batch = await call(service.url, "POST", "/batch", "gus", { requests }, from)
  assert.equal(batch.body.responses[0].status, 429)
  assert.equal((await change("DELETE", "gus", "a")).status, 202)
  assert.match(service.output(), /changes are refused: a user stores too many/)
  assert.match(service.output(), /changes are refused: an address stores too many/)
})

it("counts a large subscription of an address as several changes", async () => {
  const header = { "x-forwarded-for": "203.0.113.20" }
  const { subscription } = push.subscribe()
  const data = { ...subscription, extra: "x".repeat(largeBytes) }
  const stored = await call(service.url, "POST", "/subscriptions", "ida", { data }, header)
  assert.equal(stored.status, 201)
  const path = "/channels/a/registration"
  const refused = await call(service.url, "PUT", path, "jon", undefined, header)
  assert.deepEqual([refused.status, refused.body.error_code], [429, "too-many-changes"])
  // For the user it is one change: two are allowed.
  const elsewhere = { "x-forwarded-for": "203.0.113.21" }
  assert.equal((await call(service.url, "PUT", path, "ida", undefined, elsewhere)).status, 202)
})

it("counts a test of a subscription as a change of its user", async () => {
  const { subscription: data } = push.subscribe()
  const stored = await call(service.url, "POST", "/subscriptions", "kim", { data })
  const path = `/subscriptions/${stored.body.data.id}/test`
  const statuses: Array<number> = []
  for (let i = 0; i < changesPerUser; i++) {
    const header = from(`203.0.113.3${i}`)
    statuses.push((await call(service.url, "POST", path, "kim", undefined, header)).status)
  }
  assert.deepEqual(statuses, [200, 429])
})
