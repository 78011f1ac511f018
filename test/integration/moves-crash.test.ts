// Whose a browser is does not depend on where a projector dies: its next run decides the same, and
// so does a rebuild.
import { Effect, Fiber, Layer, References } from "effect"
import { assert, describe, it } from "vitest"
import { rebuild } from "#cli/rebuild.ts"
import { endpointHash } from "#domain/subscription/owners.ts"
import { provision } from "#nats/admin/provision.ts"
import { unavailable } from "#nats/connection/errors.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { projectionLayer } from "#projection/projector.ts"
import { subjects } from "#streams/subjects.ts"
import { until } from "../support/client.ts"
import { administer, folded, foldingLayer, quiet } from "../support/history.ts"
import { userOf } from "../support/history-commands.ts"
import { startNats } from "../support/nats.ts"

/** The owners of the first two are in one page. */
const endpoints = [198, 305, 1].map((n) => `https://push.example.com/${n}`)
const ids = endpoints.map(endpointHash)

type Random = (below: number) => number

/** One of a few users stores, replaces or removes some of a few endpoints. */
const appendOne = (
  log: EventLog["Service"],
  random: Random,
  puts: Map<string, number>,
  i: number
) => {
  const [user, n, other] = [random(4), random(3), random(3)]
  const [id, endpoint] = [ids[n]!, endpoints[n]!]
  const subject = subjects.subscription(userOf(user))
  const by = { user: `user ${user}` }
  const removed = { id: ids[other]!, lastModified: i }
  const what = random(9)
  if (what === 0)
    return log.append("log", {
      subject,
      type: "subscription.delete/1",
      body: { ...by, removed: [{ id, lastModified: i + 1 }, removed] }
    })
  const place = `${user} ${id}`
  if (what === 1)
    return log.append("log", {
      subject,
      type: "subscription.gone/1",
      body: {
        id,
        generation: puts.get(place) ?? 0,
        broadcast: 1,
        status: 410,
        cause: "gone",
        at: i
      }
    })
  const key = random(3) === 0 ? "bbbb" : "aaaa"
  const data = { endpoint, keys: { auth: key, p256dh: key } }
  const replaces = what === 3 && other !== n ? { replaces: removed } : {}
  const body = { ...by, id, data, ...replaces, lastModified: i + 1 }
  return Effect.tap(log.append("log", { subject, type: "subscription.put/1", body }), ({ seq }) =>
    Effect.sync(() => puts.set(place, seq))
  )
}

/** The buckets of a server, which fails at some writes, before or after it stores them. */
const failing = (random: Random) =>
  Layer.effect(
    Buckets,
    Effect.map(Buckets, (buckets) =>
      Buckets.of({
        ...buckets,
        putText: (...what) => {
          const fate = random(30)
          const lost = unavailable("put")(new Error("no answer"))
          if (fate === 0) return lost
          const put = buckets.putText(...what)
          return fate === 1 ? Effect.andThen(put, lost) : put
        }
      })
    )
  )

/** The projector logs each end. */
const silent = Layer.succeed(References.MinimumLogLevel, "None")

/** Numbers that are the same on every run. */
const randomFrom = (seed: number): Random => {
  let state = seed
  return (below: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return (state >>> 8) % below
  }
}

/** The owners that lists name, and those that the index names, by the hash of the endpoint. */
const ownersIn = (entries: Readonly<Record<string, string>>) => {
  const lists: Array<readonly [string, string]> = []
  const pages: Array<readonly [string, string]> = []
  for (const [subject, text] of Object.entries(entries)) {
    const key = subject.replace("$KV.bellcast_subscriptions.", "")
    if (key === subject) continue
    const value = JSON.parse(text)
    if (key.startsWith("=endpoints.")) pages.push(...(Object.entries(value.owners) as typeof pages))
    else
      for (const [id, { moved }] of Object.entries<{ moved?: number }>(value.subscriptions))
        if (moved === undefined) lists.push([id, key])
  }
  return { lists: lists.sort(), pages: pages.sort() }
}

describe("moves", { timeout: 120_000 }, () => {
  it("are decided alike wherever the projector dies, and by a rebuild, byte for byte", async () => {
    await using server = await startNats({ syncAlways: false })
    await using admin = await administer(server.url)
    const random = randomFrom(7)
    const puts = new Map<string, number>()
    let i = 1
    await Effect.gen(function* () {
      yield* provision(1)
      const log = yield* EventLog
      const projector = yield* Effect.forkDetach(
        Layer.launch(projectionLayer).pipe(Effect.provide(Layer.fresh(failing(randomFrom(11)))))
      )
      for (let run = 0; run < 120; run++) {
        yield* Effect.forEach(Array.from({ length: 12 }), () => appendOne(log, random, puts, i++), {
          concurrency: 4,
          discard: true
        })
        yield* Effect.sleep(random(200))
      }
      yield* Fiber.interrupt(projector)
    }).pipe(
      Effect.provide(Layer.merge(natsLayer({ url: server.url, name: "test" }), silent)),
      Effect.runPromise
    )
    const agreed = () =>
      until(
        async () => ownersIn(await admin.entries()),
        ({ lists, pages }) => lists.length > 0 && JSON.stringify(lists) === JSON.stringify(pages),
        10_000
      )
    await Effect.runPromise(
      Effect.andThen(folded(0), Effect.promise(agreed)).pipe(
        Effect.provide(foldingLayer(server.url))
      )
    )
    const before = await admin.entries()
    const { lists, pages } = ownersIn(before)
    assert.deepEqual(pages, lists)
    assert.lengthOf(new Set(lists.map(([id]) => id)), lists.length)
    await Effect.runPromise(
      rebuild().pipe(
        Effect.provide(Layer.merge(natsLayer({ url: server.url, name: "test" }), quiet))
      )
    )
    assert.deepEqual(await admin.entries(), before)
  })
})
