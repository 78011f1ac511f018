// Quotas of a user, exact over several gateways, and new users per address.
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { call, channelsOf } from "../support/client.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { connectAdmin, type NatsAdmin } from "../support/nats-admin.ts"
import { type PushService, startPushService } from "../support/push-service.ts"
import { type Service, startService } from "../support/service.ts"

const max = 5
const newUsersMax = 3
const perHostMax = 3
const env = {
  BELLCAST_SUBSCRIPTIONS_PER_USER_PER_HOST_MAX: String(perHostMax),
  BELLCAST_REGISTRATIONS_PER_USER_MAX: String(max),
  BELLCAST_TRUSTED_PROXIES: "127.0.0.1"
}

let nats: TestNats
let push: PushService
let elsewhere: PushService
let one: Service
let other: Service
let admin: NatsAdmin

beforeAll(async () => {
  nats = await startNats({ syncAlways: false })
  push = await startPushService()
  elsewhere = await startPushService()
  one = await startService({ natsUrl: nats.url, env })
  // This gateway counts new users, the other does not.
  const limited = { ...env, BELLCAST_NEW_USERS_PER_ADDRESS_PER_HOUR_MAX: String(newUsersMax) }
  other = await startService({ natsUrl: nats.url, roles: "gateway", env: limited })
  admin = await connectAdmin(nats.url)
})
afterAll(async () => {
  await admin[Symbol.asyncDispose]()
  for (const each of [one, other, push, elsewhere, nats]) await each[Symbol.asyncDispose]()
})

const register = (user: string, channel: string | number, by = one, from = "192.0.2.1") =>
  call(by.url, "PUT", `/channels/${channel}/registration`, user, undefined, {
    "x-forwarded-for": from
  })
const unregister = (user: string, channel: string | number) =>
  call(one.url, "DELETE", `/channels/${channel}/registration`, user)
const holds = async (user: string, channels: ReadonlyArray<number>) => {
  const names = await channelsOf(one.url, user)
  return channels.filter((n) => names.includes(String(n))).length
}
const commands = async () => {
  const { state } = await admin.jsm.streams.info("BELLCAST_LOG", {
    subjects_filter: "bellcast.cmd.registration.>"
  })
  return Object.keys(state.subjects ?? {}).length
}

describe("registrations", { timeout: 60_000 }, () => {
  it("of one user end at the limit, and those of others do not", async () => {
    const before = await commands()
    for (let i = 0; i < max; i++) assert.equal((await register("ann", i)).status, 202)
    const refused = await register("ann", max)
    assert.deepInclude(refused.body, { code: 429, error_code: "too-many-registrations" })
    assert.match(refused.headers.get("retry-after")!, /^\d+$/)
    for (let i = 0; i < 20; i++) assert.equal((await register("ann", 100 + i)).status, 429)
    // What is refused is not stored.
    assert.equal((await commands()) - before, max)
    assert.equal((await register("ann", 0)).status, 202)
    assert.equal((await unregister("ann", 0)).status, 202)
    assert.equal((await register("ann", max)).status, 202)
    assert.equal((await register("ann", 0)).status, 429)
    assert.equal((await register("bob", 0)).status, 202)
  })

  it("that race for the last place through two gateways leave exactly the maximum", async () => {
    const channels = Array.from({ length: 12 }, (_, n) => n)
    for (const user of ["cid", "dan", "eve"]) {
      for (const n of channels.slice(0, max - 1))
        assert.equal((await register(user, n)).status, 202)
      const raced = channels.slice(max - 1)
      const answers = await Promise.all(
        raced.map((n) => register(user, n, n % 2 === 0 ? one : other))
      )
      const statuses = answers.map(({ status }) => status).sort()
      assert.deepEqual(statuses, [202, ...raced.slice(1).map(() => 429)])
      assert.equal(await holds(user, channels), max)
    }
  })
})

describe("subscriptions at one push service", { timeout: 60_000 }, () => {
  let addresses = 0
  const subscribe = (user: string, data: unknown, by = one) => {
    addresses += 1
    const from = { "x-forwarded-for": `203.0.113.${addresses}` }
    return call(by.url, "POST", "/subscriptions", user, { data }, from)
  }
  const made = (at: PushService) => at.subscribe().subscription

  it("end at the limit, and others do not", async () => {
    const first = made(push)
    const stored = await subscribe("ida", first)
    for (let i = 1; i < perHostMax; i++)
      assert.equal((await subscribe("ida", made(push))).status, 201)
    const refused = await subscribe("ida", made(push))
    assert.deepInclude(refused.body, { code: 429, error_code: "too-many-at-push-service" })
    assert.match(refused.body.message, /at one push service/)
    assert.match(refused.headers.get("retry-after")!, /^\d+$/)
    // Another push service, another user, and the same subscription again.
    assert.equal((await subscribe("ida", made(elsewhere))).status, 201)
    assert.equal((await subscribe("jon", made(push))).status, 201)
    assert.equal((await subscribe("ida", first)).status, 200)
    const path = `/subscriptions/${stored.body.data.id}`
    assert.equal((await call(one.url, "DELETE", path, "ida")).status, 200)
    assert.equal((await subscribe("ida", made(push))).status, 201)
  })

  it("that race through two gateways leave exactly the maximum", async () => {
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, i) => subscribe("kim", made(push), i % 2 === 0 ? one : other))
    )
    const statuses = answers.map(({ status }) => status).sort()
    assert.deepEqual(statuses, [...Array(perHostMax).fill(201), ...Array(5).fill(429)])
  })
})

describe("new users", { timeout: 60_000 }, () => {
  const subscribe = (user: string, from: string) =>
    call(
      other.url,
      "POST",
      "/subscriptions",
      user,
      { data: push.subscribe().subscription },
      { "x-forwarded-for": from }
    )

  it("of one address are rejected beyond the limit, but known users are not", async () => {
    const from = "198.51.100.7"
    for (let i = 0; i < newUsersMax; i++)
      assert.equal((await subscribe(`new${i}`, from)).status, 201)
    const refused = await subscribe("gus", from)
    assert.deepInclude(refused.body, { code: 429, error_code: "too-many-new-users" })
    const seconds = Number(refused.headers.get("retry-after"))
    assert.isAtMost(seconds, 3_600 / newUsersMax)
    assert.isAbove(seconds, 3_600 / newUsersMax - 60)
    assert.equal((await register("gus", 0, other, from)).status, 429)
    // Neither reading nor publishing makes a user.
    assert.equal((await call(other.url, "GET", "/subscriptions", "hal")).status, 200)
    // Who stored something before goes on, also from there; and so do other addresses.
    assert.equal((await register("new0", 0, other, from)).status, 202)
    assert.equal((await subscribe("bob", from)).status, 201)
    assert.equal((await subscribe("gus", "198.51.100.8")).status, 201)
    assert.equal((await subscribe("gus", from)).status, 201)
    assert.include(other.output(), "new users are refused")
    assert.notInclude(
      other
        .output()
        .split("\n")
        .find((line) => line.includes("new users are refused")) ?? "",
      from
    )
  })
})
