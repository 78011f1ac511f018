// What a full stream or bucket stops, and what still works. Each case fills one, and enlarges it
// under the running service.
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { broadcastPath, changeState, patchState } from "../support/broadcast-states.ts"
import { call, finished, join, publish, until } from "../support/client.ts"
import { holdResponses } from "../support/held.ts"
import { becomes, type Room, startRoom } from "../support/room.ts"

let room: Room
beforeAll(async () => {
  room = await startRoom()
})
afterAll(() => room[Symbol.asyncDispose]())

describe("a service that has no room", { timeout: 60_000 }, () => {
  it("rejects writes to a full LOG, still deletes, and recovers with more room", async () => {
    const stored = (await room.subscribe("ann")).body.data
    assert.equal((await room.register("news", "ann")).status, 202)
    assert.isTrue((await room.heartbeat()).body.space)
    const grow = await room.fill("BELLCAST_LOG", 0.96)
    // A small LOG has little left: nothing is written before the gateway knows.
    const health = await becomes(room.heartbeat, 503)
    assert.deepEqual(health.body, {
      storage: true,
      cache: true,
      permission: true,
      space: false,
      delivery: true,
      roles: true
    })
    const refused = await room.broadcast("news")
    assert.equal(refused.status, 507)
    assert.deepInclude(refused.body, { code: 507, errno: 201, error: "Insufficient Storage" })
    assert.match(refused.headers.get("retry-after")!, /^\d+$/)
    assert.equal((await room.subscribe("bob")).status, 507)
    assert.equal((await room.register("news", "bob")).status, 507)
    const metrics = (await call(room.service.url, "GET", "/__metrics__")).body
    assert.include(metrics, 'bellcast_stream_full{stream="BELLCAST_LOG",refused="growth"} 1')
    const channels = 'bellcast_stream_full{stream="KV_bellcast_channels",refused="growth"} 0'
    assert.include(metrics, channels)
    assert.match(metrics, /^bellcast_stream_bytes\{stream="KV_bellcast_channels"\} [1-9]/mu)
    // What is held already is no growth.
    assert.equal((await room.register("news", "ann")).status, 202)
    assert.equal((await room.unregister("news", "ann")).status, 202)
    const removed = await call(room.service.url, "DELETE", `/subscriptions/${stored.id}`, "ann")
    assert.equal(removed.status, 200)
    const batch = await call(room.service.url, "POST", "/batch", "ann", {
      defaults: { method: "PUT" },
      requests: [{ path: "/channels/news/registration" }, { method: "GET", path: "/" }]
    })
    assert.deepEqual(
      batch.body.responses.map(({ status }: { status: number }) => status),
      [507, 200]
    )
    await grow()
    await becomes(() => room.broadcast("news"), 202)
    await becomes(() => room.subscribe("bob"), 201)
    const lines = await until(
      async () => room.service.output(),
      (output) => output.includes("a stream has room again")
    )
    assert.include(lines, "a stream is more than 95 % full")
  })

  it("keeps the last tenth of LOG for broadcasts", async () => {
    const grow = await room.fill("BELLCAST_LOG", 0.92)
    // Registrations are small: those before the gateway knows must not fill the next twentieth.
    let tries = 0
    await becomes(() => room.register("news", `kay${tries++}`), 507)
    assert.equal((await room.subscribe("kay")).status, 507)
    assert.equal((await room.broadcast("news")).status, 202)
    assert.equal((await call(room.service.url, "DELETE", "/", "kay0")).status, 202)
    // Users get 507: an operator must hear of that.
    await until(room.heartbeat, ({ body }) => body.space === false)
    const metrics = (await call(room.service.url, "GET", "/__metrics__")).body
    assert.include(metrics, 'bellcast_stream_full{stream="BELLCAST_LOG",refused="users"} 1')
    assert.include(metrics, 'bellcast_stream_full{stream="BELLCAST_LOG",refused="growth"} 0')
    await grow()
    await becomes(() => room.subscribe("kay"), 201)
    // An erasure makes room, which the next test must not have.
    await until(() => room.isErased("kay0"), Boolean)
  })

  it("stops a broadcast in the last 5 % of LOG, and none without any room", async () => {
    await room.joinWith("wrong", "lea", ["503 retry-after 600"])
    const id = await publish(room.service.url, "wrong", { n: 1 })
    const full = await room.fill("BELLCAST_LOG")
    const refused = await patchState(room.service.url, id, "paused")
    assert.deepInclude(refused.body, { code: 507, errno: 201 })
    await full()
    const grow = await room.fill("BELLCAST_LOG", 0.96)
    await becomes(() => room.broadcast("wrong"), 507)
    for (const state of ["paused", "cancelled"]) await changeState(room.service.url, id, state)
    await grow()
    const counts = { accepted: 1, cancelled: 1, finished: true }
    assert.deepInclude(await finished(room.service.url, "wrong", id), counts)
  })

  it("delivers what was accepted while LOG is full, and stores the facts later", async () => {
    const agents = [
      await room.joinWith("gone", "mia", ["slow 1000 410"]),
      await room.joinWith("gone", "ned", ["slow 1000 418"])
    ]
    const { respond } = holdResponses(agents)
    await room.joinWith("gone", "oda", ["201"])
    const ids = []
    for (let n = 0; n < 3; n++) ids.push(await publish(room.service.url, "gone", { n }))
    const grow = await room.fill("BELLCAST_LOG")
    respond()
    const counts = { accepted: 3, delivered: 1, gone: 1, dead: 1, finished: true }
    for (const id of ids) assert.deepInclude(await finished(room.service.url, "gone", id), counts)
    assert.equal(await room.finishedFacts("gone"), 0)
    assert.equal(await room.lastOf("mia"), "subscription.put/1")
    const metrics = (await call(room.service.url, "GET", "/__metrics__")).body
    assert.match(metrics, /bellcast_facts_postponed_total\{fact="subscription.gone"\} [1-9]/u)
    assert.match(metrics, /bellcast_facts_postponed_total\{fact="broadcast.finished"\} [1-9]/u)
    assert.include(room.service.output(), "removals, strikes or retries cannot be stored")
    await grow()
    await room.lastBecomes("mia", "subscription.gone/1")
    await room.lastBecomes("ned", "subscription.struck/1")
    await room.finishedFactsBecome("gone", 3)
    for (const id of ids) {
      await room.entryIsGone(id)
      assert.deepInclude(await finished(room.service.url, "gone", id), counts)
    }
  })

  it("stores the facts that a killed worker left when LOG was full", async () => {
    const { respond } = holdResponses([await room.joinWith("killed", "pia", ["slow 1000 410"])])
    const id = await publish(room.service.url, "killed", { n: 1 })
    const grow = await room.fill("BELLCAST_LOG")
    respond()
    const counts = { accepted: 1, gone: 1, finished: true }
    assert.deepInclude(await finished(room.service.url, "killed", id), counts)
    await room.restart()
    await grow()
    await room.lastBecomes("pia", "subscription.gone/1")
    await room.finishedFactsBecome("killed", 1)
    await room.entryIsGone(id)
  })

  it("refuses a broadcast that WORK has no room to deliver, and nothing else", async () => {
    assert.equal((await room.subscribe("cid")).status, 201)
    const before = await publish(room.service.url, "news", { n: 1 })
    const grow = await room.fill("BELLCAST_WORK", 0.96)
    await becomes(room.heartbeat, 503)
    assert.equal((await room.broadcast("news")).status, 507)
    // Impossible with room, too.
    const wanted = { data: { at: new Date(Date.now() + 60_000).toISOString() } }
    const { body } = await call(
      room.service.url,
      "PATCH",
      broadcastPath(before),
      "publisher",
      wanted
    )
    assert.deepInclude(body, { code: 409, errno: 124 })
    assert.equal((await room.register("news", "cid")).status, 202)
    await grow()
    await becomes(() => room.broadcast("news"), 202)
  })

  it("drops no retry that WORK has no room for, and sends nothing twice", async () => {
    const agents = Array.from({ length: 4 }, () =>
      room.push.subscribe({ script: ["slow 1000 503", "201"] })
    )
    await join(
      [room.service.url],
      "busy",
      agents.map(({ subscription }) => subscription)
    )
    const { respond } = holdResponses(agents)
    const before = room.push.requests
    const id = await publish(room.service.url, "busy", { n: 1 })
    await room.push.waitFor(({ requests }) => requests > before)
    // Room for an outcome of one or two results (500 to 800 bytes), and not for a retry job more.
    const { state } = await room.admin.jsm.streams.info("BELLCAST_WORK")
    const grow = await room.fill("BELLCAST_WORK", state.bytes / (state.bytes + 1_000))
    respond()
    await until(
      async () => (await call(room.service.url, "GET", "/__metrics__")).body,
      (metrics) => /bellcast_facts_postponed_total\{fact="retry"\} [1-9]/u.test(metrics)
    )
    await grow()
    assert.deepInclude(await finished(room.service.url, "busy", id), { accepted: 4, delivered: 4 })
    for (const { attempts } of agents)
      assert.deepEqual(
        attempts.map(({ status }) => status),
        [503, 201]
      )
  })
})
