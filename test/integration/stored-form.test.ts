// A store of another form: a start refuses it, says what to do, and changes nothing.
import { afterAll, assert, beforeAll, describe, expect, it } from "@effect/vitest"
import { storedForm } from "#streams/index.ts"
import { call, join } from "../support/client.ts"
import { rebuildAt } from "../support/history.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { connectAdmin, type NatsAdmin } from "../support/nats-admin.ts"
import { type PushService, startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"

const log = "BELLCAST_LOG"
const bucket = "KV_bellcast_subscriptions"

let nats: TestNats
let admin: NatsAdmin
let push: PushService

beforeAll(async () => {
  nats = await startNats({ syncAlways: false })
  admin = await connectAdmin(nats.url)
  push = await startPushService()
  await using service = await startService({ natsUrl: nats.url })
  await join([service.url], "news", [push.subscribe().subscription])
  await service.stop()
})

afterAll(async () => {
  await admin?.[Symbol.asyncDispose]()
  await push?.[Symbol.asyncDispose]()
  await nats?.[Symbol.asyncDispose]()
})

const setForm = async (stream: string, form: string | undefined) => {
  const { config } = await admin.jsm.streams.info(stream)
  const { bellcast_form: _, ...others } = config.metadata ?? {}
  const metadata = form === undefined ? others : { ...others, bellcast_form: form }
  await admin.jsm.streams.update(stream, { ...config, metadata })
}

/** Configuration and state of all streams but that of leases, which expire. */
const everything = async () => {
  const streams = await admin.jsm.streams.list().next()
  return streams
    .filter(({ config }) => config.name !== "KV_bellcast_cache")
    .map(({ config, state: { consumer_count: _, ...state } }) => ({ config, state }))
    .sort((a, b) => (a.config.name < b.config.name ? -1 : 1))
}

const start = () => startService({ natsUrl: nats.url })

describe("a store of another form", () => {
  it.for([undefined, "0"])("is refused where it is a stream of form %s", async (form) => {
    await setForm(log, form)
    const before = await everything()
    await expect(start()).rejects.toThrow(
      /cannot start\. BELLCAST_LOG is stored in .+; this version reads form \d+\. Nothing was/
    )
    await expect(rebuildAt(nats.url)).rejects.toThrow(
      /BELLCAST_LOG is stored in .*restore a backup/
    )
    assert.deepStrictEqual(await everything(), before)
    await setForm(log, storedForm.streams)
  })

  it("is refused where it is a bucket, which a rebuild makes anew", async () => {
    await setForm(bucket, "1")
    const before = await everything()
    await expect(start()).rejects.toThrow(
      /KV_bellcast_subscriptions is stored in form 1; .* run `bellcast rebuild`/
    )
    assert.deepStrictEqual(await everything(), before)
    await rebuildAt(nats.url)
    await using service = await start()
    const { body } = await call(service.url, "GET", "/subscriptions", "user0")
    assert.lengthOf(body.data, 1)
  })
})
