// A store of another form: a start refuses it, says what to do, and changes nothing.
import { once } from "node:events"
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

/** The form of a version that does not exist yet. */
const later = "99"

const setMetadata = async (stream: string, more: Readonly<Record<string, string>>) => {
  const { config } = await admin.jsm.streams.info(stream)
  const { bellcast_form: _, ...others } = config.metadata ?? {}
  await admin.jsm.streams.update(stream, {
    ...config,
    metadata: { bellcast_form: storedForm.streams, ...others, ...more }
  })
}

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

  it("is refused where it is a bucket of a later version, until a rebuild goes back", async () => {
    await setForm(bucket, later)
    const before = await everything()
    await expect(start()).rejects.toThrow(
      /KV_bellcast_subscriptions is stored in form 99; .* run `bellcast rebuild` of this version/
    )
    assert.deepStrictEqual(await everything(), before)
    await rebuildAt(nats.url)
    await using service = await start()
    const { body } = await call(service.url, "GET", "/subscriptions", "user0")
    assert.lengthOf(body.data, 1)
  })

  it.for(["the buckets are made again", "KV_bellcast_registrations is stored"])(
    "ends a process that runs, which says why: %s",
    async (why) => {
      await using service = await start()
      const ended = once(service.process, "exit")
      const isBegun = why.startsWith("the buckets")
      if (isBegun) await setMetadata(log, { bellcast_buckets_form: later })
      else await setForm("KV_bellcast_registrations", later)
      assert.deepStrictEqual(await ended, [1, null])
      assert.include(service.output(), `${why} in form 99 now; this version reads form`)
      await expect(start()).rejects.toThrow(/is stored in form 99|What the buckets hold/)
      await rebuildAt(nats.url)
      await using again = await start()
      await again.stop()
    }
  )
})
