// `bellcast verify` on buckets of a service that has stopped: nothing is found where nothing is
// wrong, and whatever is changed behind the back of the service is, with the message that it rests
// on. The service that runs: test/integration/verify-running.test.ts.
import { jetstream } from "@nats-io/jetstream"
import { Effect, Layer } from "effect"
import { assert, describe, it } from "vitest"
import type { PushResult } from "#domain/outcome.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { EndedMillis } from "#projection/forget.ts"
import type { Difference } from "#rebuild/rules.ts"
import { BetweenMoments, verify } from "#rebuild/verify.ts"
import type { BucketName } from "#streams/buckets.ts"
import { subjects } from "#streams/subjects.ts"
import { channelToken } from "#streams/tokens.ts"
import { administer, quiet, rebuildAt, useHistory } from "#test/history.ts"
import { acceptOn, broadcastOn } from "../support/history-broadcasts.ts"
import { subscriptionOf, userOf } from "../support/history-commands.ts"

const shared = useHistory()

const verifyAt = (url: string, endedMillis = 3_600_000) =>
  Effect.runPromise(
    verify().pipe(
      Effect.provideService(BetweenMoments, 10),
      Effect.provideService(EndedMillis, endedMillis),
      Effect.provide(Layer.merge(natsLayer({ url, name: "verify" }), quiet))
    )
  )

const delivered: PushResult = {
  ...{ user: userOf(1), subscription: subscriptionOf(1), fate: "delivered", status: 201 },
  ...{ reason: "accepted", attempt: 1, millis: 12, at: 5_020 }
}

type Admin = Awaited<ReturnType<typeof administer>>

const subjectOf = (bucket: BucketName, key: string) => `$KV.bellcast_${bucket}.${key}`

/** The first entry of a bucket with such a key and value. */
const firstOf = async (admin: Admin, bucket: BucketName, key: RegExp, value = /./) => {
  const prefix = subjectOf(bucket, "")
  const found = Object.entries(await admin.entries()).find(
    ([subject, text]) =>
      subject.startsWith(prefix) && key.test(subject.slice(prefix.length)) && value.test(text)
  )
  assert.isDefined(found, `${bucket} ${key}`)
  return { subject: found![0], value: JSON.parse(found![1]) }
}

const put = (admin: Admin, subject: string, value: unknown) =>
  jetstream(admin.nc).publish(subject, JSON.stringify(value))
const remove = async (admin: Admin, subject: string) => {
  const stream = `KV_${subject.split(".")[1]}`
  const { seq } = (await admin.jsm.streams.getMessage(stream, { last_by_subj: subject }))!
  await admin.jsm.streams.deleteMessage(stream, seq)
}

/** Each kind of entry: its key, what is changed, and the member that says by which message. */
const kinds: ReadonlyArray<
  readonly [what: string, BucketName, RegExp, Record<string, unknown>, stream: "LOG" | "WORK"]
> = [
  ["a list of subscriptions", "subscriptions", /^[^=]/, { lastModified: 7 }, "LOG"],
  ["a page of owners", "subscriptions", /^=endpoints/, { owners: {} }, "LOG"],
  ["a registration", "registrations", /^[^=]/, { since: 1 }, "LOG"],
  ["the registrations of users", "registrations", /^=users/, { users: {} }, "LOG"],
  ["the count of a channel", "channels", /registrations$/, { registrations: 99 }, "LOG"],
  ["the begin of a channel", "channels", /^=begin/, { since: 1 }, "LOG"],
  ["the pushes of a channel", "channels", /pushes$/, { pushes: 99 }, "WORK"],
  ["the progress of a broadcast", "broadcasts", /./, { delivered: 99 }, "WORK"],
  ["the grants of a channel", "permissions", /publishers$/, { principals: [] }, "LOG"],
  ["a token", "permissions", /^=token/, { expiresAt: 99 }, "LOG"],
  ["the drafts of an author", "drafts", /./, { drafts: [] }, "LOG"]
]

describe("verify", { timeout: 120_000 }, () => {
  it("finds nothing where nothing is wrong, and writes nothing", async () => {
    await using admin = await administer(shared.history.url)
    const states = async () =>
      (await admin.jsm.streams.list().next())
        .filter(({ config }) => config.name !== "KV_bellcast_cache")
        .map(({ config: { name }, state }) => [name, state.last_seq, state.consumer_count])
    const before = await states()
    const { count, differences, entries, moments } = await verifyAt(shared.history.url)
    assert.deepEqual(differences, [])
    assert.deepEqual([count, moments], [0, 1])
    const stored = Object.keys(await admin.entries()).length
    assert.equal(
      Object.values(entries).reduce((sum, each) => sum + each, 0),
      stored
    )
    assert.deepEqual(await states(), before)
  })

  it.each(kinds)("finds %s that was changed, and one that was removed", async (...row) => {
    const [, bucket, key, change, stream] = row
    const { url } = shared.history
    await using admin = await administer(url)
    const { subject, value } = await firstOf(admin, bucket, key, /"on":true|"v":1/)
    const since = value.seq ?? value.since
    await put(admin, subject, { ...value, ...change })
    const changed = await verifyAt(url)
    assert.lengthOf(changed.differences, 1, JSON.stringify(changed.differences))
    assert.deepInclude(changed.differences[0], { bucket, is: "changed", stream, since })
    const [member = ""] = Object.keys(change)
    assert.isTrue(changed.differences[0]!.members.some((each) => each.startsWith(member)))
    await remove(admin, subject)
    const gone = await verifyAt(url)
    assert.deepInclude(gone.differences[0], { bucket, is: "missing", stream, since })
    await rebuildAt(url)
    assert.equal((await verifyAt(url)).count, 0)
  })

  it("finds an entry of each bucket that was added", async () => {
    const { done, url } = shared.history
    await using admin = await administer(url)
    const { value } = await firstOf(admin, "broadcasts", /./)
    const since = 3
    const added: ReadonlyArray<readonly [BucketName, string, object]> = [
      ["subscriptions", "AAAAAAAAAAAAAAAAAAAAAA", { v: 1, seq: 3, subscriptions: {} }],
      ["registrations", "news.0.0.0.0.AAAAAAAAAAAAAAAAAAAAAA", { v: 1, seq: 3, since, on: true }],
      ["channels", "bogus.registrations", { v: 1, seq: 3, since, registrations: 5 }],
      ["channels", "=begin.bogus", { v: 1, since }],
      ["broadcasts", `${done}`, { ...value, broadcast: done, finished: false }],
      ["permissions", "bogus.publishers", { v: 1, seq: 3, principals: ["a:b"], registrars: [] }]
    ]
    for (const [bucket, key, text] of added) await put(admin, subjectOf(bucket, key), text)
    const { differences } = await verifyAt(url)
    const is = differences.map(({ bucket, is }: Difference) => `${bucket} ${is}`)
    assert.deepEqual(is.sort(), added.map(([bucket]) => `${bucket} added`).sort())
    await rebuildAt(url)
    assert.equal((await verifyAt(url)).count, 0)
  })

  it("finds an entry that is no JSON", async () => {
    const { url } = shared.history
    await using admin = await administer(url)
    const { subject } = await firstOf(admin, "subscriptions", /^[^=]/, /"v":1/)
    await jetstream(admin.nc).publish(subject, "no JSON")
    const { differences } = await verifyAt(url)
    assert.lengthOf(differences, 1)
    assert.deepInclude(differences[0], { bucket: "subscriptions", is: "changed" })
    await rebuildAt(url)
    assert.equal((await verifyAt(url)).count, 0)
  })

  it("takes no difference for one that no view shows, or that time makes", async () => {
    const { url } = shared.history
    await using admin = await administer(url)
    // Checkpoints are not verified, nor what is lost without harm.
    const meta = { v: 1, seq: 999_999 }
    await put(admin, subjectOf("permissions", "meta"), meta)
    await put(admin, subjectOf("cache", "page.x"), { v: 1 })
    // A killed nats-server brings counts of a channel back, and indexes of drafts.
    const count = { v: 1, seq: 3, since: 3, registrations: 5, lastModified: 1 }
    await put(admin, subjectOf("channels", "gone.registrations"), count)
    await put(admin, subjectOf("channels", "gone.pushes"), { ...count, pushes: 5 })
    const index = { v: 1, seq: 4, drafts: [["over", 4]] }
    await put(admin, subjectOf("drafts", "AAAAAAAAAAAAAAAAAAAAAA"), index)
    assert.deepEqual((await verifyAt(url)).differences, [])
    // A registration that ended an hour ago may be forgotten, and one that ended later not.
    const { subject, value } = await firstOf(admin, "registrations", /^[^=]/, /"on":false/)
    await put(admin, subject, { ...value, since: 1 })
    assert.deepEqual((await verifyAt(url)).differences, [])
    await remove(admin, subject)
    const [missing] = (await verifyAt(url)).differences
    assert.deepInclude(missing, { bucket: "registrations", is: "missing", since: value.seq })
    assert.deepEqual((await verifyAt(url, 0)).differences, [])
    await rebuildAt(url)
  })

  it("counts outcomes that WORK has before the plan of their broadcast", async () => {
    const { url } = shared.history
    const news = channelToken("news")
    await Effect.gen(function* () {
      const broadcast = yield* acceptOn(news)
      const early = { broadcast, pushes: 0, results: [delivered], final: false, at: 5_020 }
      const subject = subjects.shardOutcome(news, broadcast, "all")
      yield* (yield* EventLog).append("work", { subject, type: "outcome", body: early })
      const { shard } = yield* broadcastOn(news, 1, { broadcast, since: broadcast })
      yield* shard("all", 1, [[2, "delivered"]], true, 5_021)
    }).pipe(Effect.provide(natsLayer({ url, name: "verify" })), Effect.runPromise)
    // The rebuild stores the final counts, too: these are no reason to pass over an outcome.
    await rebuildAt(url)
    assert.deepEqual((await verifyAt(url)).differences, [])
  })

  it("takes from LOG what WORK no longer holds", async () => {
    const { done, empty, lost, mixed, scheduled, url } = shared.history
    await using admin = await administer(url)
    for (const broadcast of [done, empty, lost, mixed, scheduled])
      for (const filter of [`bellcast.plan.*.${broadcast}`, `bellcast.outcome.*.${broadcast}.>`])
        await admin.jsm.streams.purge("BELLCAST_WORK", { filter })
    assert.deepEqual((await verifyAt(url)).differences, [])
    const { subject, value } = await firstOf(admin, "channels", /^news\.pushes$/)
    await put(admin, subject, { ...value, pushes: value.pushes + 1 })
    const { differences } = await verifyAt(url)
    assert.lengthOf(differences, 1)
    assert.include(differences[0]!.members, `pushes ${value.pushes + 1}, not ${value.pushes}`)
    await put(admin, subject, { ...value, lastModified: value.lastModified + 1 })
    const [wrongTime] = (await verifyAt(url)).differences
    assert.match(wrongTime!.members.join(), /^lastModified \d+, not \d+$/)
    await rebuildAt(url)
    assert.equal((await verifyAt(url)).count, 0)
  })
})
