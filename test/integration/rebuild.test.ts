import { assert, describe, it } from "@effect/vitest"
import { jetstream } from "@nats-io/jetstream"
import { Effect } from "effect"
import { historyDaysMin } from "#domain/history.ts"
import { readHistoryPlace, writeHistoryPlace } from "#history/place.ts"
import { emptyBucket, refuseMissingBuckets } from "#nats/admin/maintenance.ts"
import { provision } from "#nats/admin/provision.ts"
import type { Nats } from "#nats/connection/connection.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { natsLayer } from "#nats/layer.ts"
import { keys } from "#streams/buckets.ts"
import type { UserToken } from "#streams/tokens.ts"
import {
  administer,
  bucketStreams,
  folded,
  foldingLayer,
  rebuildAt,
  useHistory
} from "#test/history.ts"
import { planFloor } from "#test/history-broadcasts.ts"
import { channels } from "#test/history-commands.ts"
import { startNats } from "#test/nats.ts"

/** Runs against the buckets of a server that no service uses. */
const at = <A, E>(url: string, program: Effect.Effect<A, E, Buckets | Nats>) =>
  Effect.runPromise(program.pipe(Effect.provide(natsLayer({ url, name: "test" }))))

/** The registrations of a channel as a worker reads them that was told to wait for a revision. */
const registered = (floor: number) =>
  Effect.flatMap(Buckets, (buckets) =>
    buckets.getMany("registrations", [keys.registrationsOf(channels[0]!, "all")], floor)
  )

/** Each case ends with the buckets that LOG and WORK say. */
const shared = useHistory()

describe("rebuild", { timeout: 90_000 }, () => {
  it("makes deleted buckets anew, byte for byte", async () => {
    const service = shared.history
    await using admin = await administer(service.url)
    const before = await admin.entries()
    assert.isAbove(Object.keys(before).length, 40)
    for (const stream of bucketStreams) await admin.jsm.streams.delete(stream)
    const made = await rebuildAt(service.url)
    assert.deepStrictEqual(await admin.entries(), before)
    assert.strictEqual(
      made.reduce((sum, { entries }) => sum + entries, 0),
      Object.keys(before).length
    )
    assert.isAbove((await at(service.url, registered(planFloor)))?.length ?? 0, 0)
  })

  it("removes entries that the streams do not hold, and continues revisions", async () => {
    const service = shared.history
    await using admin = await administer(service.url)
    const before = await admin.entries()
    const floor = await at(
      service.url,
      Effect.gen(function* () {
        const buckets = yield* Buckets
        let revision = 0
        for (let i = 0; i < 50; i++)
          revision = yield* buckets.put(
            "registrations",
            "news.0.0.0.0.somebody",
            { v: 1, i },
            revision
          )
        return revision
      })
    )
    await rebuildAt(service.url)
    assert.deepStrictEqual(await admin.entries(), before)
    assert.isAbove((await at(service.url, registered(floor)))?.length ?? 0, 0)
  })

  it("is taken up by the service where it left off, without a change", async () => {
    const service = shared.history
    await using admin = await administer(service.url)
    const before = await admin.entries()
    await rebuildAt(service.url)
    await Effect.runPromise(
      folded(service.lastWork - 1).pipe(Effect.provide(foldingLayer(service.url)))
    )
    const after = await admin.entries()
    const touched = Object.keys(before).filter((key) => after[key] !== before[key])
    // One more command was folded, for one user.
    assert.lengthOf(touched, 1)
    assert.match(touched[0] ?? "", /^\$KV\.bellcast_subscriptions\./)
  })

  it("takes from LOG, once, what WORK no longer holds or holds by half", async () => {
    const service = shared.history
    await using admin = await administer(service.url)
    const before = await admin.entries()
    const { done, empty, lost, mixed, scheduled } = service
    // The plan and the first outcomes of one broadcast, all of the others.
    const { state } = await admin.jsm.streams.info("BELLCAST_WORK")
    for (let seq = state.first_seq, left = 2; seq <= state.last_seq && left > 0; seq++) {
      const message = await admin.jsm.streams.getMessage("BELLCAST_WORK", { seq })
      if (!message?.subject.includes(`.${done}`)) continue
      await admin.jsm.streams.deleteMessage("BELLCAST_WORK", seq)
      left--
    }
    for (const broadcast of [empty, lost, mixed, scheduled]) {
      for (const filter of [`bellcast.plan.*.${broadcast}`, `bellcast.outcome.*.${broadcast}.>`])
        await admin.jsm.streams.purge("BELLCAST_WORK", { filter })
    }
    await rebuildAt(service.url)
    assert.deepStrictEqual(await admin.entries(), before)
  })

  it("keeps from when on LOG is whole, and says so where that was lost", async () => {
    const { url } = shared.history
    await using admin = await administer(url)
    const rebuilt = async () => {
      await rebuildAt(url)
      return (await at(url, readHistoryPlace)).historyFrom
    }
    const stream = "KV_bellcast_permissions"
    await at(url, writeHistoryPlace({ historyFrom: 12_345 }))
    const { config } = await admin.jsm.streams.info(stream)
    const metadata = { ...config.metadata, bellcast_form: "1" }
    await admin.jsm.streams.update(stream, { ...config, metadata })
    assert.equal(await rebuilt(), 12_345)

    // The history never ends later than that.
    const shortest = () => Date.now() - historyDaysMin * 24 * 3_600_000
    const before = shortest()
    const { seq } = await jetstream(admin.nc).publish("bellcast.evt.rejected.999999", "{}")
    await admin.jsm.streams.deleteMessage("BELLCAST_LOG", seq)
    await admin.jsm.streams.delete(stream)
    const found = await rebuilt()
    assert.isTrue(before - 1_000 <= found && found <= shortest() + 1_000, String(found))
  })

  it("mends a bucket whose checkpoint is no JSON, with which no service starts", async () => {
    const { url } = shared.history
    await using admin = await administer(url)
    const before = await admin.entries()
    await jetstream(admin.nc).publish("$KV.bellcast_channels.meta", "no JSON")
    const refused = await at(url, Effect.flip(refuseMissingBuckets))
    assert.match(refused.message, /bellcast_channels.* run `bellcast rebuild`/)
    await rebuildAt(url)
    await at(url, refuseMissingBuckets)
    assert.deepStrictEqual(await admin.entries(), before)
  })

  it("writes what differs and pauses nothing where buckets are only wrong", async () => {
    const service = shared.history
    await using admin = await administer(service.url)
    // Revisions are from here on what the jobs of the history wait for.
    await rebuildAt(service.url)
    const before = await admin.entries()
    const lastSeqs = async () =>
      Promise.all(
        bucketStreams.map(async (stream) => (await admin.jsm.streams.info(stream)).state.last_seq)
      )
    const lastBefore = await lastSeqs()
    assert.deepEqual(
      (await rebuildAt(service.url)).map(({ changed }) => changed),
      bucketStreams.map(() => 0)
    )
    assert.deepEqual(await lastSeqs(), lastBefore)
    const [changed, removed, deleted] = Object.keys(before).filter((subject) =>
      subject.startsWith("$KV.bellcast_registrations.")
    )
    await admin.nc.request(changed!, '{"v":1,"seq":1}')
    await admin.nc.request("$KV.bellcast_registrations.news.0.0.0.0.somebody", "{}")
    await admin.jsm.streams.purge("KV_bellcast_registrations", { filter: removed! })
    await admin.nc.request(deleted!, "")
    // Nothing is paused, so a message in hand delays nothing either.
    await admin.nc.request("bellcast.cmd.broadcast.test.news", "{}")
    const planner = await jetstream(admin.nc).consumers.get("BELLCAST_LOG", "planner")
    await planner.next()
    const made = await rebuildAt(service.url)
    assert.deepEqual(
      made.filter((each) => each.changed > 0),
      [{ bucket: "bellcast_registrations", entries: made[1]!.entries, changed: 4 }]
    )
    assert.deepStrictEqual(await admin.entries(), before)
    const nobody = keys.registration(channels[0]!, "A".repeat(22) as UserToken)
    const read = () =>
      at(
        service.url,
        Effect.flatMap(Buckets, (buckets) => buckets.get("registrations", nobody))
      )
    assert.isUndefined(await read())
    await admin.nc.request("$KV.bellcast_registrations.news.0.0.0.0.somebody", "{}")
    await rebuildAt(service.url)
    assert.isUndefined(await read())
    assert.deepStrictEqual(await admin.entries(), before)
  })

  it("leaves a bucket that is half built unread: its absent entries may exist", async () => {
    await using nats = await startNats({ syncAlways: false })
    const nobody = keys.registration(channels[0]!, "A".repeat(22) as UserToken)
    const failures = await Effect.runPromise(
      Effect.gen(function* () {
        yield* provision(1)
        const buckets = yield* Buckets
        assert.isUndefined(yield* buckets.get("registrations", nobody))
        yield* emptyBucket("registrations", 1, 0)
        const one = yield* Effect.flip(buckets.get("registrations", nobody))
        return [one, yield* Effect.flip(buckets.getMany("registrations", [nobody], 0))]
      }).pipe(Effect.provide(natsLayer({ url: nats.url, name: "test" })))
    )
    for (const { cause } of failures)
      assert.equal(String(cause), "Error: KV_bellcast_registrations is half built: run a rebuild")
  })
})
