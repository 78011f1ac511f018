// Renewals without a login, and the making of their secrets, count against the limits of their
// address and of their user.
import { afterAll, assert, beforeAll, it } from "vitest"
import { call, until } from "../support/client.ts"
import { end } from "../support/end.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { type PushService, startPushService } from "../support/push-service.ts"
import { type Service, startService } from "../support/service.ts"

const changesMax = 3
/** The limit of `quotas.ts`. */
const renewalsPerMinuteMax = 60

let nats: TestNats
let push: PushService
let service: Service

beforeAll(async () => {
  nats = await startNats({ syncAlways: false })
  push = await startPushService()
  service = await startService({
    natsUrl: nats.url,
    roles: "gateway,projection",
    env: {
      BELLCAST_TRUSTED_PROXIES: "127.0.0.1",
      BELLCAST_SUBSCRIPTIONS_PER_USER_MAX: "1",
      BELLCAST_CHANGES_PER_USER_PER_HOUR_MAX: String(changesMax)
    }
  })
})
afterAll(async () => {
  for (const each of [service, push, nats]) await each?.[Symbol.asyncDispose]()
})

const prefer = { prefer: "renewal" }
const post = (user: string, data: object, headers = {}) =>
  call(service.url, "POST", "/subscriptions", user, { data }, headers)
const renew = (renewal: string, address: string) => {
  const data = push.subscribe().subscription
  const from = { "x-forwarded-for": address }
  return call(service.url, "POST", "/subscriptions/replace", undefined, { renewal, data }, from)
}

it("an address sends no more secrets in a minute than the limit", { timeout: 60_000 }, async () => {
  const unknown = `${"A".repeat(22)}.${"0".repeat(64)}.${"A".repeat(43)}`
  const begin = performance.now()
  const first = await Promise.all(
    Array.from({ length: renewalsPerMinuteMax }, () => renew(unknown, "192.0.2.1"))
  )
  assert.deepEqual(new Set(first.map(({ status }) => status)), new Set([403]))
  // The limit allows another secret each second, and the first ones may take some seconds.
  let more = -1
  const refused = await until(
    () => {
      more += 1
      return renew(unknown, "192.0.2.1")
    },
    ({ status }) => status !== 403
  )
  assert.isAtMost(more, Math.ceil((performance.now() - begin) / 1_000))
  assert.deepInclude(refused.body, { code: 429, error_code: "too-many-requests" })
  assert.match(refused.headers.get("retry-after")!, /^[1-9]\d*$/)
  assert.equal((await renew(unknown, "192.0.2.2")).status, 403)
})

it("a subscription that ended is not renewed beyond the user's quota", async () => {
  const stored = await post("ann", push.subscribe().subscription, prefer)
  const { data, renewal } = stored.body
  await end(nats.url, service.url, "ann", data.id)
  const { body } = await post("ann", push.subscribe().subscription)
  const refused = await renew(renewal, "192.0.2.3")
  assert.deepInclude(refused.body, { code: 429, error_code: "too-many-subscriptions" })
  assert.equal(
    (await call(service.url, "DELETE", `/subscriptions/${body.data.id}`, "ann")).status,
    200
  )
  // The refusal did not spend the secret.
  assert.equal((await renew(renewal, "192.0.2.3")).status, 201)
})

it("a secret of a stored subscription counts as a change", async () => {
  const { subscription } = push.subscribe()
  const etag = (await post("bob", subscription)).headers.get("etag")
  for (let i = 1; i < changesMax; i++) {
    const again = await post("bob", subscription, prefer)
    assert.deepEqual([again.status, again.headers.get("etag")], [200, etag])
  }
  assert.deepInclude((await post("bob", subscription, prefer)).body, {
    code: 429,
    error_code: "too-many-changes"
  })
  assert.equal((await post("bob", subscription)).status, 200)
})
