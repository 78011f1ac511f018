// Every store that an earlier form left is opened by this version, and shows what it showed. How to
// record one, and when: test/README.md.
import { statSync } from "node:fs"
import { Effect } from "effect"
import { assert, describe, expect, it } from "vitest"
import { schemas } from "#domain/messages/forms.ts"
import { natsLayer } from "#nats/layer.ts"
import { typeHeader } from "#nats/stream/stored.ts"
import { verify } from "#rebuild/verify.ts"
import { storedForm } from "#streams/index.ts"
import { rebuildAt } from "#test/history.ts"
import { call, finished, finishedAt, join, publish } from "../support/client.ts"
import {
  alike,
  atPort,
  entriesOf,
  folder,
  type KeptMessage,
  keptNames,
  openKept,
  presentNames,
  readKept,
  setForm,
  viewsOf,
  writeKept
} from "../support/kept-store.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startPushService } from "../support/push-service.ts"
import { recordStore } from "../support/record-store.ts"
import { startService } from "../support/service.ts"

const bytesMax = 300 * 1024

/** Messages of publishers have no type. */
const typeOf = ({ headers }: KeptMessage) =>
  headers.flatMap(([name, value]) => (name === typeHeader ? value : []))

it.runIf(process.env["RECORD_STORE"] === "1")("records a store", { timeout: 900_000 }, async () => {
  writeKept(await recordStore())
})

describe("the kept stores of the present form", () => {
  it("have every number of every message of the table", () => {
    const kept = presentNames.map(readKept)
    const present = new Set(kept.flatMap(({ log, work }) => [...log, ...work].flatMap(typeOf)))
    const lacking = [...schemas.keys()].filter((type) => !present.has(type))
    assert.deepEqual(lacking, [], "record another store: test/README.md, Kept stores")
  })

  it("are small", () => {
    assert.isNotEmpty(presentNames)
    for (const name of presentNames) assert.isAtMost(statSync(new URL(name, folder)).size, bytesMax)
  })
})

describe.each(keptNames)("the kept store %s", (name) => {
  it("is opened, shows what it showed, and goes on", { timeout: 240_000 }, async () => {
    await using push = await startPushService()
    const store = atPort(readKept(name), Number(new URL(push.origin).port))
    await using nats = await startNats({ syncAlways: false })
    await using admin = await connectAdmin(nats.url)
    const { moved } = await openKept(nats.url, admin, store)
    const kept = JSON.parse(moved(JSON.stringify(store))) as typeof store
    await rebuildAt(nats.url)
    assert.deepEqual(alike(await entriesOf(admin), kept.buckets), kept.buckets)
    await using service = await startService({ natsUrl: nats.url, env: store.env })
    const views = await viewsOf(service.url, kept.views)
    assert.deepEqual(alike(views, kept.views), kept.views)
    const found = await Effect.runPromise(
      verify().pipe(Effect.provide(natsLayer({ url: nats.url, name: "test" })))
    )
    assert.deepEqual(found.differences, [])
    const agent = push.subscribe()
    await join([service.url], "since", [agent.subscription], 1, "since")
    const sent = await publish(service.url, "since", { n: 1 })
    assert.deepInclude(await finished(service.url, "since", sent), { accepted: 1, delivered: 1 })
    const path = `/broadcasts/${store.redrivable}/redrive`
    const { headers, status } = await call(service.url, "POST", path, "operator")
    assert.equal(status, 202)
    const redrive = headers.get("location")!.split("/").at(-1)!
    const counts = await finishedAt(service.url, `/broadcasts/${redrive}`, "operator")
    assert.isAtLeast(counts.accepted, 1)
  })

  it("is refused as one of a later form, and nothing is changed", async () => {
    await using nats = await startNats({ syncAlways: false })
    await using admin = await connectAdmin(nats.url)
    await openKept(nats.url, admin, readKept(name))
    const later = String(Number(storedForm.streams) + 1)
    for (const stream of ["BELLCAST_LOG", "BELLCAST_WORK"]) await setForm(admin, stream, later)
    const states = async () =>
      (await admin.jsm.streams.list().next())
        .filter(({ config }) => config.name !== "KV_bellcast_cache")
        .map(({ config, state }) => ({ config, messages: state.messages, last: state.last_seq }))
    const before = await states()
    await expect(startService({ natsUrl: nats.url })).rejects.toThrow(
      `BELLCAST_LOG is stored in form ${later}; this version reads form ${storedForm.streams}`
    )
    assert.deepEqual(await states(), before)
  })
})
