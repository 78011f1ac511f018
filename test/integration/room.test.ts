// What a full stream or bucket stops, and what not. Each case makes one full, and makes it larger
// again under the running service.
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream"
import { connect, type NatsConnection } from "@nats-io/transport-node"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { call, until } from "../support/client.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { type PushService, startPushService } from "../support/push-service.ts"
import { type Service, startService } from "../support/service.ts"

let nats: TestNats
let push: PushService
let service: Service
let nc: NatsConnection
let jsm: JetStreamManager

beforeAll(async () => {
  nats = await startNats({ syncAlways: false })
  push = await startPushService()
  service = await startService({ natsUrl: nats.url })
  nc = await connect({ servers: nats.url })
  jsm = await jetstreamManager(nc)
  // Nobody gets these; they make the streams so large that a small share of them is some messages.
  const data = "x".repeat(3_900)
  const ballast = () =>
    call(service.url, "POST", "/channels/ballast", "publisher", { data: { data } })
  for (let i = 0; i < 4; i++) await Promise.all(Array.from({ length: 25 }, ballast))
})
afterAll(async () => {
  await nc.close()
  await service[Symbol.asyncDispose]()
  await push[Symbol.asyncDispose]()
  await nats[Symbol.asyncDispose]()
})

/** Makes a stream as full as a share says. What it returns gives it its former size. */
const fill = async (stream: string, share = 1) => {
  const { config, state } = await jsm.streams.info(stream)
  await jsm.streams.update(stream, { max_bytes: Math.floor(state.bytes / share) })
  return async () => void (await jsm.streams.update(stream, { max_bytes: config.max_bytes }))
}
const subscribe = (user: string) =>
  call(service.url, "POST", "/subscriptions", user, { data: push.subscribe().subscription })
const register = (channel: string, user: string) =>
  call(service.url, "PUT", `/channels/${channel}/registration`, user)
const unregister = (channel: string, user: string) =>
  call(service.url, "DELETE", `/channels/${channel}/registration`, user)
const broadcast = (channel: string) =>
  call(service.url, "POST", `/channels/${channel}`, "publisher", { data: { n: 1 } })
const becomes = (ask: () => ReturnType<typeof call>, status: number) =>
  until(ask, (answer) => answer.status === status)
const heartbeat = () => call(service.url, "GET", "/__heartbeat__")

describe("a service that has no room", { timeout: 60_000 }, () => {
  it("refuses what makes LOG grow, still deletes, says so, and goes on when there is room again", async () => {
    const stored = (await subscribe("ann")).body.data
    assert.equal((await register("news", "ann")).status, 202)
    assert.isTrue((await heartbeat()).body.space)
    const grow = await fill("BELLCAST_LOG", 0.96)
    const refused = await becomes(() => broadcast("news"), 507)
    assert.deepInclude(refused.body, { code: 507, errno: 201, error: "Insufficient Storage" })
    assert.match(refused.headers.get("retry-after")!, /^\d+$/)
    assert.equal((await subscribe("bob")).status, 507)
    assert.equal((await register("news", "bob")).status, 507)
    const health = await becomes(heartbeat, 503)
    assert.deepEqual(health.body, { storage: true, cache: true, permission: true, space: false })
    const metrics = (await call(service.url, "GET", "/__metrics__")).body
    assert.include(metrics, 'bellcast_stream_full{stream="BELLCAST_LOG"} 1')
    assert.include(metrics, 'bellcast_stream_full{stream="KV_bellcast_channels"} 0')
    assert.match(metrics, /^bellcast_stream_bytes\{stream="KV_bellcast_channels"\} [1-9]/mu)
    // What is held already is no growth.
    assert.equal((await register("news", "ann")).status, 202)
    assert.equal((await unregister("news", "ann")).status, 202)
    const removed = await call(service.url, "DELETE", `/subscriptions/${stored.id}`, "ann")
    assert.equal(removed.status, 200)
    const batch = await call(service.url, "POST", "/batch", "ann", {
      defaults: { method: "PUT" },
      requests: [{ path: "/channels/news/registration" }, { method: "GET", path: "/" }]
    })
    assert.deepEqual(
      batch.body.responses.map(({ status }: { status: number }) => status),
      [507, 200]
    )
    await grow()
    await becomes(() => broadcast("news"), 202)
    await becomes(() => subscribe("bob"), 201)
    await becomes(heartbeat, 200)
    const lines = service.output()
    assert.include(lines, "a stream is more than 95 % full")
    assert.include(lines, "a stream has room again")
  })

  it("refuses a broadcast that WORK has no room to deliver, and nothing else", async () => {
    assert.equal((await subscribe("cid")).status, 201)
    const grow = await fill("BELLCAST_WORK", 0.96)
    await becomes(() => broadcast("news"), 507)
    assert.equal((await register("news", "cid")).status, 202)
    await grow()
    await becomes(() => broadcast("news"), 202)
  })
})
