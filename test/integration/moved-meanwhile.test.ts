// Pushes that wait for a permit while their browsers move to another user.
import { assert, it } from "vitest"
import { bucketStream } from "#streams/buckets.ts"
import { pushesOf } from "../support/audit.ts"
import { changeState, heldMillis } from "../support/broadcast-states.ts"
import { call, finished, join, publish, until } from "../support/client.ts"
import { holdResponses } from "../support/held.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startPushService } from "../support/push-service.ts"
import { elapsed } from "../support/quiet.ts"
import { startService } from "../support/service.ts"
import { useService } from "../support/use-service.ts"
import { UserAgent } from "../support/user-agent.ts"

const env = { BELLCAST_UNRECORDED_PUSHES_MAX: "1", BELLCAST_RETRY_BASE_MILLIS: "200" }
const shared = useService({ env }, { syncAlways: false })

it("sends nothing to browsers that moved while their pushes waited", {
  timeout: 60_000
}, async () => {
  const { nats, service } = shared
  await using push = await startPushService()
  await using admin = await connectAdmin(nats.url)
  const { url } = service
  const agents = Array.from({ length: 6 }, () => push.subscribe())
  const { respond } = holdResponses(agents)
  await join(
    [url],
    "news",
    agents.map(({ subscription }) => subscription)
  )
  const id = await publish(url, "news", { n: "for the earlier users" })
  await push.waitFor(({ requests }) => requests >= 1)
  const stored = await Promise.all(
    agents.map(({ subscription: data }) => call(url, "POST", "/subscriptions", "bob", { data }))
  )
  assert.deepEqual(new Set(stored.map(({ status }) => status)), new Set([201]))
  const left = () =>
    Promise.all(agents.map((_, i) => call(url, "GET", "/subscriptions", `user${i}`)))
  await until(left, (lists) => lists.every(({ body }) => body.data.length === 0))
  // The bucket has the moves, and here it has announced them to the worker.
  const followers = () => admin.jsm.consumers.list(bucketStream("subscriptions")).next()
  await until(followers, (all) => all.length > 0 && all.every((each) => each.num_pending === 0))
  assert.equal(push.requests, 1)
  respond()
  assert.deepInclude(await finished(url, "news", id), { accepted: 6, delivered: 1, gone: 5 })
  assert.equal(push.requests, 1)
  const ends = (await pushesOf(nats.url, id)).map(({ reason }) => reason)
  assert.deepEqual(ends.sort(), ["accepted", ...Array.from({ length: 5 }, () => "moved")])
})

it("tries no push again on a browser that moved while the retry waited", {
  timeout: 60_000
}, async () => {
  const { nats, service } = shared
  await using push = await startPushService()
  const { url } = service
  const agents = [1, 2].map(() => push.subscribe({ script: ["503", "201"] }))
  const { respond, respondOnce } = holdResponses(agents)
  const subscriptions = agents.map(({ subscription }) => subscription)
  await join([url], "retried", subscriptions, 24, "retried")
  const id = await publish(url, "retried", { n: "for the earlier users" })
  for (const count of [1, 2]) {
    await push.waitFor(({ requests }) => requests === count)
    respondOnce()
  }
  await push.waitFor(({ requests }) => requests === 3)
  // The other retry is due, has read its subscription and waits for the permit.
  await elapsed(1_000)
  for (const { subscription: data } of agents)
    assert.equal((await call(url, "POST", "/subscriptions", "cid", { data })).status, 201)
  const left = () =>
    Promise.all(agents.map((_, i) => call(url, "GET", "/subscriptions", `retried${i}`)))
  await until(left, (lists) => lists.every(({ body }) => body.data.length === 0))
  respond()
  assert.deepInclude(await finished(url, "retried", id), { accepted: 2, delivered: 1, gone: 1 })
  assert.equal(push.requests, 3)
  const ends = (await pushesOf(nats.url, id)).map(({ reason }) => reason)
  assert.deepEqual(ends.sort(), ["accepted", "moved"])
})

it("records as moved what moved while the broadcast was paused", {
  timeout: 60_000
}, async () => {
  const { nats, service } = shared
  await using push = await startPushService()
  const { url } = service
  const agents = Array.from({ length: 5 }, () => push.subscribe())
  const { respond } = holdResponses(agents)
  const subscriptions = agents.map(({ subscription }) => subscription)
  await join([url], "paused", subscriptions, 24, "paused")
  const id = await publish(url, "paused", { n: "for the earlier users" })
  await push.waitFor(({ requests }) => requests === 1)
  await changeState(url, id, "paused")
  await elapsed(heldMillis)
  respond()
  const unsent = agents.filter(({ attempts }) => attempts.length === 0)
  const [removed, ...moved] = unsent.map(({ subscription }) => subscription)
  for (const data of [removed, ...moved.slice(1)])
    assert.equal((await call(url, "POST", "/subscriptions", "dan", { data })).status, 201)
  assert.equal((await call(url, "DELETE", "/subscriptions", "dan")).status, 200)
  const later = await publish(url, "paused", { n: "for those who have one still" })
  assert.deepInclude(await finished(url, "paused", later), { accepted: 2, delivered: 2 })
  await changeState(url, id, "running")
  assert.deepInclude(await finished(url, "paused", id), { accepted: 5, delivered: 2, gone: 3 })
  assert.equal(push.requests, 4)
  const ends = (await pushesOf(nats.url, id)).map(({ reason }) => reason)
  assert.deepEqual(ends.sort(), ["accepted", "accepted", "moved", "moved", "moved"])
})

it("records what moved before any worker read it, with its push service", {
  timeout: 60_000
}, async () => {
  await using nats = await startNats({ syncAlways: false })
  const front = { natsUrl: nats.url, roles: "gateway,projection,fanout,tally" }
  await using gateway = await startService(front)
  const { url } = gateway
  const data = new UserAgent("https://fcm.googleapis.com/fcm/send/moved", {}).subscription
  await join([url], "late", [data], 24, "late")
  const id = await publish(url, "late", { n: "for the earlier user" })
  const listOf = async () => (await call(url, "GET", "/subscriptions", "late0")).headers.get("etag")
  const before = await listOf()
  assert.equal((await call(url, "POST", "/subscriptions", "eve", { data })).status, 201)
  // The list gets its tombstone a moment later, without the endpoint.
  await until(listOf, (etag) => etag !== before)
  await using _ = await startService({ natsUrl: nats.url, roles: "delivery" })
  const ended = await finished(url, "late", id)
  assert.deepInclude(ended, { accepted: 1, gone: 1, delivered: 0 })
  assert.equal(ended.push_services.google?.gone, 1)
  assert.deepEqual(ended.reasons, { moved: 1 })
})
