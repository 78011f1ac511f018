// What subscriptions that somebody made up cost the healthy ones, through the running service.
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { call, finished, publish, until } from "../support/client.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { startPushService } from "../support/push-service.ts"
import { type Service, startService } from "../support/service.ts"
import type { UserAgent } from "../support/user-agent.ts"

let nats: TestNats
let service: Service

beforeAll(async () => {
  nats = await startNats()
  service = await startService({
    natsUrl: nats.url,
    env: { BELLCAST_PUSHES_UNDER_WAY_MAX: "1" }
  })
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await nats[Symbol.asyncDispose]()
})

const joinAs = async (prefix: string, channel: string, agents: ReadonlyArray<UserAgent>) => {
  await Promise.all(
    agents.map(async ({ subscription }, i) => {
      const user = `${prefix}${i}`
      await call(service.url, "POST", "/subscriptions", user, { data: subscription })
      await call(service.url, "PUT", `/channels/${channel}/registration`, user)
    })
  )
}

describe("120 subscriptions that are gone from the start", () => {
  it("are all removed by one broadcast that 30 healthy ones get, with one request each", {
    timeout: 90_000
  }, async () => {
    await using push = await startPushService()
    const healthy = Array.from({ length: 30 }, () => push.subscribe())
    await joinAs("healthy", "before", healthy)
    await finished(service.url, "before", await publish(service.url, "before", { n: 1 }))
    const madeUp = Array.from({ length: 120 }, () => push.subscribe({ script: ["410"] }))
    // Users get a broadcast in the order of their registrations: one healthy, four forged, and so
    // on.
    for (let i = 0; i < 30; i++) {
      await call(service.url, "PUT", "/channels/gone/registration", `healthy${i}`)
      await joinAs(`madeup${i}.`, "gone", madeUp.slice(4 * i, 4 * i + 4))
    }
    const counts = await finished(service.url, "gone", await publish(service.url, "gone", { n: 2 }))
    assert.deepInclude(counts, { accepted: 150, delivered: 30, gone: 120 })
    assert.equal(push.requests, 180)
  })
})

describe("60 subscriptions made with another key at a push service that took nothing yet", () => {
  it("keep a healthy one waiting for seconds, and are asked about once each", {
    timeout: 90_000
  }, async () => {
    await using push = await startPushService()
    const mismatch = '403 {"reason":"VapidPkHashMismatch"}'
    const madeUp = Array.from({ length: 60 }, () => push.subscribe({ script: [mismatch] }))
    await joinAs("mismatched", "cold", madeUp)
    const genuine = push.subscribe()
    await joinAs("genuine", "cold", [genuine])
    await publish(service.url, "cold", { n: 1 })
    await until(
      async () => genuine.received.length,
      (count) => count === 1
    )
    const before = madeUp.flatMap(({ attempts }) => attempts)
    assert.isAtMost(before.filter(({ at }) => at <= genuine.received[0]!.at).length, 62)
  })
})
