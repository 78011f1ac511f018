// Buckets of an earlier form: a start makes them again, whatever happens meanwhile.
import type { ChildProcess } from "node:child_process"
import { once } from "node:events"
import { afterEach, assert, beforeAll, beforeEach, describe, expect, it, vi } from "@effect/vitest"
import { storedForm } from "#streams/index.ts"
import { fileOf } from "#test/bundle.ts"
import { endLeases, filled } from "#test/half-built.ts"
import { administer, bucketStreams, rebuildAt } from "#test/history.ts"
import { startNats, type TestNats } from "#test/nats.ts"
import { claimPort } from "#test/ports.ts"
import { startService } from "#test/service.ts"
import { storeUsers } from "#test/stored-users.ts"

const users = 600
const kills = 10
const makers = "projection,tally,fanout"

let nats: TestNats
let admin: Awaited<ReturnType<typeof administer>>
let whole: Record<string, string>

const setForm = async (stream: string, form: string) => {
  const { config } = await admin.jsm.streams.info(stream)
  const metadata = { ...config.metadata, bellcast_form: form }
  await admin.jsm.streams.update(stream, { ...config, metadata })
}

/** As an earlier version had left them: other values, entries of its own, and some missing. */
const spoil = async () => {
  for (const stream of bucketStreams) await setForm(stream, "1")
  const [changed, gone] = Object.keys(whole)
  await admin.nc.request(changed!, '{"v":0,"old":true}')
  await admin.jsm.streams.purge("KV_bellcast_subscriptions", { filter: gone! })
  await admin.nc.request("$KV.bellcast_registrations.an.old.key", "{}")
}

/** Undefined: the stream is gone, at this moment. */
const metadataOf = (stream: string): Promise<Record<string, string> | undefined> =>
  admin.jsm.streams.info(stream).then(
    ({ config }) => config.metadata,
    () => undefined
  )

const formsNow = () =>
  Promise.all(
    [...bucketStreams, "BELLCAST_LOG"].map(async (stream) => {
      const { bellcast_buckets_form: making, bellcast_form: form } =
        (await metadataOf(stream)) ?? {}
      return { form, making }
    })
  )

/** A start that is not waited for. */
const begin = (roles: string, env: Readonly<Record<string, string>> = {}) => {
  let child: ChildProcess | undefined
  let output = ""
  const ready = startService({
    natsUrl: nats.url,
    roles,
    env,
    readyTimeoutMillis: 230_000,
    spawned: (spawned) => {
      child = spawned
    },
    printed: (text) => {
      output += text
    }
  })
  ready.catch(() => {})
  return { ready, child: () => child!, output: () => output }
}

const printed = (start: ReturnType<typeof begin>, pattern: RegExp) =>
  vi.waitUntil(() => pattern.test(start.output()), { interval: 20, timeout: 100_000 })

// A first start makes the bundle, which takes longer than the lines that are waited for.
beforeAll(() => fileOf("service"))

beforeEach(async () => {
  nats = await startNats({ syncAlways: false })
  await storeUsers(nats.url, { to: users })
  admin = await administer(nats.url)
  await rebuildAt(nats.url)
  whole = await admin.entries()
  await spoil()
})

afterEach(async () => {
  await admin[Symbol.asyncDispose]()
  await nats[Symbol.asyncDispose]()
})

const isWhole = async () => {
  assert.deepStrictEqual(await admin.entries(), whole)
  const forms = await formsNow()
  assert.deepStrictEqual(
    forms.map(({ form, making }) => [form, making]),
    [...bucketStreams.map(() => storedForm.buckets), storedForm.streams].map((f) => [f, undefined])
  )
}

describe("buckets of an earlier form", { timeout: 240_000 }, () => {
  it("are made by one process that starts; the others wait, alive but not ready", async () => {
    const port = await claimPort()
    const gateway = begin("gateway", { BELLCAST_METRICS_ADDRESS: `127.0.0.1:${port}` })
    await printed(gateway, /no process has begun to make them: it must run the role/)
    const heartbeat = await fetch(`http://127.0.0.1:${port}/__heartbeat__`)
    assert.strictEqual(heartbeat.status, 503)
    assert.strictEqual(((await heartbeat.json()) as { buckets: boolean }).buckets, false)
    assert.strictEqual((await fetch(`http://127.0.0.1:${port}/__lbheartbeat__`)).status, 200)
    const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
    assert.match(metrics, /^bellcast_heartbeat\{.*check="buckets".*\} 0$/m)
    const delivery = begin("delivery")
    const [one, other] = [begin(makers), begin(makers)]
    const all = [gateway, delivery, one, other]
    const services = await Promise.all(all.map(({ ready }) => ready))
    await isWhole()
    const makes = all.filter(({ output }) => /buckets are made again: BELLCAST_LOG/.test(output()))
    assert.lengthOf(makes, 1)
    for (const service of services) await service.stop()
  })

  it(`are made though the process that makes them is killed ${kills} times`, async () => {
    const gateway = begin("gateway")
    await printed(gateway, /this process waits/)
    const { messages } = { messages: Object.keys(whole).length }
    for (let n = 0; n < kills; n++) {
      const enough = Math.floor(((n + Math.random()) / kills) * messages)
      const maker = begin(makers)
      // From its first step on: before, the buckets of the earlier form are full.
      await printed(maker, /buckets are made again: BELLCAST_LOG/)
      if (n > 0)
        await vi.waitUntil(
          async () => {
            const forms = await formsNow()
            const isBegun = forms.slice(0, -1).every(({ form }) => form === storedForm.buckets)
            return isBegun && (await filled(admin)).messages >= enough
          },
          { interval: 5, timeout: 60_000 }
        )
      const ended = once(maker.child(), "exit")
      maker.child().kill("SIGKILL")
      await ended
      await endLeases(admin)
    }
    const maker = begin(makers)
    const services = await Promise.all([maker.ready, gateway.ready])
    await isWhole()
    for (const service of services) await service.stop()
  })

  it("are made though NATS is killed meanwhile, and though they are of two forms", async () => {
    await setForm("KV_bellcast_channels", "2")
    const maker = begin(makers)
    await printed(maker, /buckets are made again: BELLCAST_LOG/)
    await nats.kill()
    await nats.restart()
    await vi.waitFor(() => endLeases(admin), { timeout: 30_000 })
    const service = await maker.ready
    await isWhole()
    await service.stop()
  })

  it("end the start where one has no room, and the next start with room goes on", async () => {
    const name = "KV_bellcast_subscriptions"
    const { config } = await admin.jsm.streams.info(name)
    await admin.jsm.streams.purge(name)
    await admin.jsm.streams.update(name, { ...config, max_bytes: 100_000 })
    await expect(begin(makers).ready).rejects.toThrow(
      /cannot start\. .*KV_bellcast_subscriptions has no room/
    )
    const { config: small } = await admin.jsm.streams.info(name)
    await admin.jsm.streams.update(name, { ...small, max_bytes: config.max_bytes })
    await endLeases(admin)
    const service = await begin(makers).ready
    await isWhole()
    await service.stop()
  })
})
