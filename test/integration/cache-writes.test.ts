// What anybody may have written into the bucket `cache`: not what they please, and not as often.
import { randomUUID } from "node:crypto"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { call } from "../support/client.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { connectAdmin, type NatsAdmin } from "../support/nats-admin.ts"
import { type PushService, startPushService } from "../support/push-service.ts"
import { type Service, startService } from "../support/service.ts"

let nats: TestNats
let push: PushService
let service: Service
let admin: NatsAdmin

beforeAll(async () => {
  nats = await startNats({ syncAlways: false })
  push = await startPushService()
  service = await startService({ natsUrl: nats.url })
  admin = await connectAdmin(nats.url)
})
afterAll(async () => {
  await admin[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
  await push[Symbol.asyncDispose]()
  await nats[Symbol.asyncDispose]()
})

/** How many entries of the bucket `cache` a filter matches. */
const entries = async (filter: string) => {
  const { state } = await admin.jsm.streams.info("KV_bellcast_cache", {
    subjects_filter: `$KV.bellcast_cache.${filter}`
  })
  return Object.keys(state.subjects ?? {}).length
}

const forged = () =>
  Buffer.from(
    JSON.stringify({
      last_object: { last_modified: 1 },
      offset: 1,
      nonce: randomUUID(),
      expires: Date.now() + 600_000
    })
  ).toString("base64url")

/** Stores two subscriptions and returns the token of the second page. */
const tokenOf = async (user: string) => {
  for (let i = 0; i < 2; i++)
    await call(service.url, "POST", "/subscriptions", user, { data: push.subscribe().subscription })
  const { headers } = await call(service.url, "GET", "/subscriptions?_limit=1", user)
  return new URL(headers.get("next-page")!).searchParams.get("_token")!
}
const useOf = (user: string, token: string, method = "DELETE") =>
  call(service.url, method, `/subscriptions?_limit=1&_token=${encodeURIComponent(token)}`, user)

describe("the bucket cache", { timeout: 60_000 }, () => {
  it("keeps no page token that the service did not issue to this user", async () => {
    const token = await tokenOf("ann")
    const [signed, signature] = token.split(".")
    const changed = [
      forged(),
      `${forged()}.${signature}`,
      `${signed}.${signature}x`,
      `${signed}.`,
      `${token}.${signature}`
    ]
    for (const method of ["GET", "DELETE"])
      for (const each of changed) assert.equal((await useOf("ann", each, method)).status, 400, each)
    assert.equal((await useOf("bob", token)).status, 400)
    assert.equal(await entries("page.*"), 0)
    assert.equal((await useOf("ann", token, "GET")).status, 200)
    assert.equal((await useOf("ann", token)).status, 200)
    assert.equal((await useOf("ann", token)).status, 400)
    assert.equal(await entries("page.*"), 1)
  })

  it("is written once a second at most by heartbeats, however many ask", async () => {
    const before = await entries("probe.*")
    const began = performance.now()
    const requests = Array.from({ length: 25 }, () => ({ path: "/__heartbeat__" }))
    for (let round = 0; round < 4; round++) {
      const answers = await Promise.all([
        ...Array.from({ length: 20 }, () => call(service.url, "GET", "/__heartbeat__")),
        call(service.url, "POST", "/batch", undefined, { requests })
      ])
      assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
      const { responses } = answers.at(-1)!.body
      assert.isTrue(responses.every(({ status }: { status: number }) => status === 200))
    }
    const seconds = (performance.now() - began) / 1000
    assert.isAtMost((await entries("probe.*")) - before, Math.floor(seconds) + 1)
  })
})
