// A channel that everybody left leaves no entry in the bucket of counts, and begins at 0 again.
import { jetstream } from "@nats-io/jetstream"
import { headers } from "@nats-io/transport-node"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { call, finished, publish, until } from "../support/client.ts"
import { rebuildAt } from "../support/history.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { connectAdmin, type NatsAdmin } from "../support/nats-admin.ts"
import { type PushService, startPushService } from "../support/push-service.ts"
import { type Service, startService } from "../support/service.ts"

const bucket = "KV_bellcast_channels"
const log = "BELLCAST_LOG"

let nats: TestNats
let push: PushService
let one: Service
let other: Service
let admin: NatsAdmin

beforeAll(async () => {
  nats = await startNats({ syncAlways: false })
  push = await startPushService()
  one = await startService({ natsUrl: nats.url })
  other = await startService({ natsUrl: nats.url, roles: "gateway" })
  admin = await connectAdmin(nats.url)
})
afterAll(async () => {
  await admin?.[Symbol.asyncDispose]()
  for (const each of [one, other, push, nats]) await each?.[Symbol.asyncDispose]()
})

const change = async (method: "PUT" | "DELETE", channel: string, user: string, by = one) => {
  // A client repeats its request while NATS comes back.
  const request = () => call(by.url, method, `/channels/${channel}/registration`, user)
  assert.equal((await until(request, ({ status }) => status !== 503)).status, 202)
}
const join = (channel: string, user: string, by = one) => change("PUT", channel, user, by)
const leave = (channel: string, user: string, by = one) => change("DELETE", channel, user, by)
const read = (channel: string, user: string, by = other) =>
  call(by.url, "GET", `/channels/${channel}`, user)
const countsOf = async (channel: string, user: string) => {
  const { body, status } = await read(channel, user)
  assert.equal(status, 200)
  return [body.data.registrations, body.data.push]
}
const subscribe = async (user: string, script: ReadonlyArray<string> = ["201"]) => {
  const data = push.subscribe({ script }).subscription
  assert.equal((await call(one.url, "POST", "/subscriptions", user, { data })).status, 201)
}
/** The keys of the bucket but for its `meta`. */
const entries = async () => {
  const { state } = await admin.jsm.streams.info(bucket, { subjects_filter: ">" })
  return Object.keys(state.subjects ?? {}).filter((subject) => !subject.endsWith(".meta"))
}
const nothingIsLeft = () => until(entries, (keys) => keys.length === 0)
const lastCommand = async () =>
  (await admin.jsm.streams.getMessage(log, { last_by_subj: "bellcast.cmd.>" }))!.seq
/** Waits until the projector has applied everything, and another process may take over. */
const isSaved = async () => {
  const seq = await lastCommand()
  await until(
    async () => {
      const last_by_subj = "$KV.bellcast_subscriptions.meta"
      const found = await admin.jsm.streams.getMessage("KV_bellcast_subscriptions", {
        last_by_subj
      })
      return found?.json<{ seq?: number }>().seq ?? 0
    },
    (saved) => saved >= seq
  )
}

describe("a channel that everybody left", { timeout: 120_000 }, () => {
  it("leaves no entry, and begins at 0 when it is joined again, by any gateway", async () => {
    await subscribe("ann")
    await join("news", "ann")
    await join("news", "bob", other)
    await finished(one.url, "news", await publish(one.url, "news", { n: 1 }))
    await until(
      () => read("news", "bob"),
      ({ body }) => body.data.push === 1
    )
    assert.deepEqual(await countsOf("news", "ann"), [2, 1])
    await leave("news", "ann", other)
    assert.deepEqual(await countsOf("news", "bob"), [1, 1])
    await leave("news", "bob")
    assert.deepEqual(await countsOf("news", "bob"), [0, 0])
    await nothingIsLeft()
    await join("news", "bob", other)
    assert.deepEqual(await countsOf("news", "bob"), [1, 0])
    await leave("news", "bob", other)
    await nothingIsLeft()
  })

  it("begins at 0 also when it is joined at once", async () => {
    await join("quick", "ann")
    await finished(one.url, "quick", await publish(one.url, "quick", { n: 1 }))
    await until(
      () => read("quick", "ann"),
      ({ body }) => body.data.push === 1
    )
    await leave("quick", "ann")
    await join("quick", "ann", other)
    assert.deepEqual(await countsOf("quick", "ann"), [1, 0])
    await finished(one.url, "quick", await publish(one.url, "quick", { n: 2 }))
    await until(
      () => read("quick", "ann"),
      ({ body }) => body.data.push === 1
    )
    await leave("quick", "ann")
    await nothingIsLeft()
  })

  it("is not brought back by an outcome that comes late", async () => {
    await subscribe("cid", ["slow 4000 201"])
    await join("late", "cid")
    const id = await publish(one.url, "late", { n: 1 })
    await until(
      async () => (await admin.jsm.streams.info("BELLCAST_WORK")).state.last_seq,
      (last) => last > 0
    )
    await leave("late", "cid")
    await nothingIsLeft()
    await finished(one.url, "late", id)
    await isSaved()
    assert.deepEqual(await entries(), [])
    await join("late", "cid")
    assert.deepEqual(await countsOf("late", "cid"), [1, 0])
    await leave("late", "cid")
    await nothingIsLeft()
  })

  it("is what a rebuild makes of it, before and after it is joined again", async () => {
    await join("kept", "ann")
    await finished(one.url, "kept", await publish(one.url, "kept", { n: 1 }))
    await until(
      () => read("kept", "ann"),
      ({ body }) => body.data.push === 1
    )
    await join("gone", "dan")
    await leave("gone", "dan")
    await until(entries, (keys) => !keys.some((key) => key.includes("gone")))
    await join("kept", "dan")
    await isSaved()
    await one.stop()
    const changed = (await rebuildAt(nats.url)).map(({ changed }) => changed)
    assert.deepEqual(new Set(changed), new Set([0]))
    one = await startService({ natsUrl: nats.url })
    await join("gone", "dan", other)
    assert.deepEqual(await countsOf("gone", "dan"), [1, 0])
    assert.deepEqual(await countsOf("kept", "dan"), [2, 1])
    for (const [channel, user] of [
      ["gone", "dan"],
      ["kept", "dan"],
      ["kept", "ann"]
    ] as const)
      await leave(channel, user)
    await nothingIsLeft()
  })

  it("is forgotten by the next process where this one was killed before", async () => {
    await join("crash", "eve")
    await leave("crash", "eve")
    await one.kill()
    const left = await entries()
    one = await startService({ natsUrl: nats.url })
    assert.isNotEmpty(left)
    await nothingIsLeft()
  })

  it("stays forgotten when a killed nats-server brings its entries back", async () => {
    for (let n = 0; n < 3; n++) {
      await join("back", `fay${n}`)
      if (n > 0) await leave("back", `fay${n}`)
    }
    await leave("back", "fay0")
    await nothingIsLeft()
    await nats.kill()
    await nats.restart()
    const rejoined = () => call(other.url, "PUT", "/channels/back/registration", "fay0")
    await until(rejoined, ({ status }) => status === 202)
    assert.deepEqual(await countsOf("back", "fay0"), [1, 0])
    await leave("back", "fay0")
    await nothingIsLeft()
  })

  it("leaves no bytes, however many made-up names are joined and left", async () => {
    const { bytes } = (await admin.jsm.streams.info(bucket)).state
    const js = jetstream(admin.nc)
    const command = (n: number, type: string) => {
      const typed = headers()
      typed.set("Bellcast-Type", `registration.${type}/1`)
      const body = JSON.stringify({ user: "gus", at: Date.now() })
      const subject = `bellcast.cmd.registration.made-up-${n}.${"g".repeat(22)}`
      return js.publish(subject, body, { headers: typed })
    }
    for (let n = 0; n < 1_250; n += 250)
      await Promise.all(
        Array.from({ length: 250 }, async (_, i) => {
          await command(n + i, "put")
          await command(n + i, "delete")
        })
      )
    // Before the first of them is applied, and between two batches, nothing is left either.
    await isSaved()
    await nothingIsLeft()
    assert.isAtMost((await admin.jsm.streams.info(bucket)).state.bytes, bytes + 100)
  })
})
