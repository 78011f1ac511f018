// What a full bucket stops: what makes it grow, and nothing else. A bucket counts as full from 95 %
// on; the rest is for entries that are written again.
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { call, finished, publish, until } from "../support/client.ts"
import { becomes, type Room, startRoom } from "../support/room.ts"

const full = 0.96

let room: Room
beforeAll(async () => {
  room = await startRoom()
})
afterAll(() => room[Symbol.asyncDispose]())

const post = (data: unknown, user: string) =>
  call(room.service.url, "POST", "/subscriptions", user, { data })
const put = (id: string, data: unknown, user: string) =>
  call(room.service.url, "PUT", `/subscriptions/${id}`, user, { data })
const isDelivered = async (channel: string) =>
  assert.deepInclude(
    await finished(room.service.url, channel, await publish(room.service.url, channel, { n: 1 })),
    { accepted: 1, delivered: 1 }
  )
const registrationsOf = async (channel: string, user: string) =>
  (await room.channelOf(channel, user)).body.data.registrations

describe("a full bucket", { timeout: 60_000 }, () => {
  it("`subscriptions` refuses larger lists; the same, smaller ones and removals work", async () => {
    const { subscription } = room.push.subscribe()
    const { id } = (await post(subscription, "anna")).body.data
    await room.joinWith("lists", "anna", ["201"])
    const gone = room.push.subscribe({ script: ["410"] }).subscription
    assert.equal((await post(gone, "bert")).status, 201)
    assert.equal((await room.register("lists", "bert")).status, 202)
    const grow = await room.fill("KV_bellcast_subscriptions", full)
    await becomes(room.heartbeat, 503)
    assert.equal((await post(room.push.subscribe().subscription, "cara")).status, 507)
    assert.equal((await post(room.push.subscribe().subscription, "anna")).status, 507)
    assert.equal((await put(id, { ...subscription, extra: "more" }, "anna")).status, 507)
    assert.equal((await put(id, subscription, "anna")).status, 200)
    assert.equal((await post(subscription, "anna")).status, 200)
    assert.equal((await room.register("side", "cara")).status, 202)
    assert.equal((await room.unregister("side", "cara")).status, 202)
    const counts = { accepted: 3, delivered: 2, gone: 1 }
    const sent = await publish(room.service.url, "lists", { n: 1 })
    assert.deepInclude(await finished(room.service.url, "lists", sent), counts)
    await until(
      () => call(room.service.url, "GET", "/subscriptions", "bert"),
      ({ body }) => body.data.length === 0
    )
    assert.equal((await call(room.service.url, "DELETE", "/subscriptions", "anna")).status, 200)
    await grow()
    await becomes(() => post(room.push.subscribe().subscription, "cara"), 201)
  })

  it("`registrations` refuses new ones; leaving, subscribing and delivering work", async () => {
    await room.joinWith("places", "dora", ["201"])
    assert.equal((await room.register("left", "dora")).status, 202)
    const grow = await room.fill("KV_bellcast_registrations", full)
    await becomes(room.heartbeat, 503)
    assert.equal((await room.register("places", "erik")).status, 507)
    assert.equal((await room.register("places", "dora")).status, 202)
    assert.equal((await room.unregister("left", "dora")).status, 202)
    assert.equal((await room.channelOf("left", "dora")).body.data.registrations, 0)
    assert.equal((await post(room.push.subscribe().subscription, "erik")).status, 201)
    await isDelivered("places")
    await grow()
    await becomes(() => room.register("places", "erik"), 202)
  })

  it("`channels` refuses new channels; others count who joins, leaves and is sent to", async () => {
    await room.joinWith("known", "finn", ["201"])
    const grow = await room.fill("KV_bellcast_channels", full)
    await becomes(room.heartbeat, 503)
    assert.equal((await room.register("unknown", "gina")).status, 507)
    assert.equal((await room.register("known", "gina")).status, 202)
    assert.equal(await registrationsOf("known", "gina"), 2)
    assert.equal((await room.unregister("known", "gina")).status, 202)
    assert.equal(await registrationsOf("known", "finn"), 1)
    await isDelivered("known")
    await until(
      () => room.channelOf("known", "finn"),
      ({ body }) => body.data.push === 1
    )
    assert.equal((await post(room.push.subscribe().subscription, "gina")).status, 201)
    await grow()
    await becomes(() => room.register("unknown", "gina"), 202)
  })

  it("`broadcasts` refuses broadcasts, and finishes those that were accepted", async () => {
    await room.joinWith("match", "hugo", ["slow 1000 201"])
    const sent = await publish(room.service.url, "match", { n: 1 })
    const grow = await room.fill("KV_bellcast_broadcasts", full)
    await becomes(room.heartbeat, 503)
    assert.equal((await room.broadcast("match")).status, 507)
    const counts = { accepted: 1, delivered: 1 }
    assert.deepInclude(await finished(room.service.url, "match", sent), counts)
    assert.equal((await room.register("match", "ines")).status, 202)
    assert.equal((await post(room.push.subscribe().subscription, "ines")).status, 201)
    await grow()
    await becomes(() => room.broadcast("match"), 202)
  })
})

describe("a bucket without any room", { timeout: 60_000 }, () => {
  it("counts late what a full `channels` could not store, and delivers meanwhile", async () => {
    const agent = room.push.subscribe()
    const data = agent.subscription
    assert.equal(
      (await call(room.service.url, "POST", "/subscriptions", "dan", { data })).status,
      201
    )
    assert.equal((await room.register("news", "dan")).status, 202)
    const grow = await room.fill("KV_bellcast_channels")
    // Each has changed more than once, and one of them stays.
    for (const what of ["put", "delete", "put"] as const) await room.command("late", "dan", what)
    for (const what of ["put", "delete"] as const) await room.command("late", "eve", what)
    await becomes(() => room.register("later", "eve"), 507)
    assert.isUndefined(await room.countOf("late"))
    // Neither other writes nor broadcasts need this bucket.
    assert.equal((await room.subscribe("fay")).status, 201)
    assert.equal((await room.unregister("news", "dan")).status, 202)
    const id = await publish(room.service.url, "late", { to: "dan" })
    assert.deepInclude(await finished(room.service.url, "late", id), { accepted: 1, delivered: 1 })
    assert.deepEqual(
      agent.received.map(({ text }) => text),
      ['{"to":"dan"}']
    )
    assert.isFalse((await becomes(room.heartbeat, 503)).body.space)
    await room.restart()
    assert.equal((await room.subscribe("gus")).status, 201)
    assert.isUndefined(await room.countOf("late"))
    await grow()
    await until(
      () => room.countOf("late"),
      (count) => count === 1
    )
    await becomes(() => room.register("later", "eve"), 202)
    assert.equal((await room.channelOf("later", "eve")).body.data.registrations, 1)
  })

  it("rejects only writes to the full one of `subscriptions` and `registrations`", async () => {
    assert.equal((await room.subscribe("hal")).status, 201)
    const growLists = await room.fill("KV_bellcast_subscriptions")
    await becomes(() => room.subscribe("ida"), 507)
    assert.equal((await room.register("news", "hal")).status, 202)
    await growLists()
    await becomes(() => room.subscribe("ida"), 201)
    const growPlaces = await room.fill("KV_bellcast_registrations")
    await room.command("other", "hal", "put")
    await becomes(() => room.register("other", "ida"), 507)
    assert.equal((await room.subscribe("jon")).status, 201)
    const id = await publish(room.service.url, "news", { n: 2 })
    assert.equal((await finished(room.service.url, "news", id)).finished, true)
    await growPlaces()
    await becomes(() => room.register("other", "ida"), 202)
    await becomes(() => room.channelOf("other", "hal"), 200)
    assert.equal(await room.countOf("other"), 2)
  })

  it("delivers what NATS clients publish while `broadcasts` is full, and counts late", async () => {
    const agent = await room.joinWith("sport", "kim", ["201"])
    const grow = await room.fill("KV_bellcast_broadcasts")
    const ids = [await room.publishOnNats(1), await room.publishOnNats(2)]
    await until(
      async () => agent.received.length,
      (count) => count === 2
    )
    await until(
      () => room.channelOf("sport", "kim"),
      ({ body }) => body.data?.push === 2
    )
    await grow()
    for (const id of ids)
      assert.deepInclude(await finished(room.service.url, "sport", id), { delivered: 1 })
  })

  it("keeps its leases, and takes page tokens, while `cache` is full", async () => {
    for (let i = 0; i < 2; i++) assert.equal((await room.subscribe("lea")).status, 201)
    const grow = await room.fill("KV_bellcast_cache")
    const lease = async () =>
      (
        await room.admin.jsm.streams.getMessage("KV_bellcast_cache", {
          last_by_subj: "$KV.bellcast_cache.lease.projector"
        })
      )?.seq ?? 0
    const before = await lease()
    const said = room.service.output().length
    const { headers } = await call(room.service.url, "GET", "/subscriptions?_limit=1", "lea")
    const next = headers.get("next-page")!.slice(room.service.url.length)
    assert.equal((await call(room.service.url, "DELETE", next, "lea")).status, 200)
    assert.equal((await call(room.service.url, "DELETE", next, "lea")).status, 400)
    await becomes(room.heartbeat, 200)
    // Longer than a lease lasts that is not renewed.
    await until(lease, (revision) => revision > before + 10)
    assert.equal((await room.subscribe("lea")).status, 201)
    assert.notInclude(room.service.output().slice(said), "stopped and starts again")
    await grow()
  })
})
