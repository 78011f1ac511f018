// Streams and buckets restored from copies of different moments: a start refuses them, a rebuild
// mends them, and a process that runs ends when a stream is replaced under it.
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { refuseOtherCopies } from "#nats/admin/start-checks.ts"
import { natsLayer } from "#nats/layer.ts"
import { rebuild } from "#rebuild/rebuild.ts"
import { metaKey } from "#streams/buckets.ts"
import { backUp, type Copies, restore } from "../support/backup.ts"
import { call, finished, join, publish, until } from "../support/client.ts"
import { quiet } from "../support/history.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { connectAdmin, type NatsAdmin } from "../support/nats-admin.ts"
import { type PushService, startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"

const log = "BELLCAST_LOG"
const work = "BELLCAST_WORK"
const buckets = [
  "subscriptions",
  "registrations",
  "channels",
  "broadcasts",
  "permissions",
  "drafts"
].map((bucket) => `KV_bellcast_${bucket}`)

let nats: TestNats
let admin: NatsAdmin
let push: PushService
/** Broadcasts before and after the first copy. */
let first: string
let second: string
/** Planned before the later copy, and not sent. */
let third: string
/** A copy while the service ran, and one of everything after it was stopped. */
let earlier: Copies
let later: Copies

const subscriptionsOf = (count: number) =>
  Array.from({ length: count }, () => push.subscribe().subscription)

/** Returns when the checkpoint of a bucket is at the end of its stream: it is a second late. */
const checkpointed = (bucket: string, stream: string) =>
  until(
    async () => {
      const { state } = await admin.jsm.streams.info(stream)
      const meta = await metaOf(bucket)
      return { last: state.last_seq, mark: meta.mark?.seq ?? 0 }
    },
    ({ last, mark }) => mark >= last - 1
  )

const publishDirectly = async (): Promise<string> => {
  const ack = await admin.nc.request("bellcast.cmd.broadcast.x.news", "{}")
  return String(ack.json<{ seq: number }>().seq)
}

const metaOf = async (bucket: string) => {
  const found = await admin.jsm.streams.getMessage(`KV_bellcast_${bucket}`, {
    last_by_subj: `$KV.bellcast_${bucket}.${metaKey}`
  })
  return found!.json<{ seq?: number; mark?: { seq: number; at: number } }>()
}

beforeAll(async () => {
  nats = await startNats({ syncAlways: false })
  admin = await connectAdmin(nats.url)
  push = await startPushService()
  await using service = await startService({ natsUrl: nats.url })
  await join([service.url], "news", subscriptionsOf(3))
  first = await publish(service.url, "news", { n: 1 })
  await finished(service.url, "news", first)
  await checkpointed("broadcasts", work)
  earlier = await backUp(admin)
  await join([service.url], "news", subscriptionsOf(2), 24, "late")
  second = await publish(service.url, "news", { n: 2 })
  await finished(service.url, "news", second)
  await checkpointed("broadcasts", work)
  await service.stop()
  await using planner = await startService({ natsUrl: nats.url, roles: "projection,fanout" })
  third = await publishDirectly()
  await until(
    () => admin.jsm.consumers.info(log, "planner"),
    ({ ack_floor }) => ack_floor.stream_seq >= Number(third)
  )
  await planner.stop()
  later = await backUp(admin)
})

afterAll(async () => {
  await admin?.[Symbol.asyncDispose]()
  await push?.[Symbol.asyncDispose]()
  await nats?.[Symbol.asyncDispose]()
})

const only = (copies: Copies, names: ReadonlyArray<string>): Copies =>
  Object.fromEntries(names.map((name) => [name, copies[name]!]))

/** Restores the later copies, but these streams from the earlier ones. */
const restoreMixed = async (...older: ReadonlyArray<string>) => {
  await restore(admin, { ...later, ...only(earlier, older) })
}

const on = <A, E>(program: Effect.Effect<A, E, Layer.Success<ReturnType<typeof natsLayer>>>) =>
  Effect.runPromise(
    program.pipe(Effect.provide(Layer.merge(natsLayer({ url: nats.url, name: "test" }), quiet)))
  )

/** Why a start on these streams is refused; empty: it is not. */
const refusal = () =>
  on(
    refuseOtherCopies.pipe(
      Effect.as(""),
      Effect.catchTag("StartRefused", ({ message }) => Effect.succeed(message))
    )
  )

/** Everything that a user sees of channel and broadcasts. */
const seen = async (url: string) => {
  const channel = (await call(url, "GET", "/channels/news", "user0")).body.data
  const view = async (broadcast: string) => {
    const { body } = await call(url, "GET", `/channels/news/broadcasts/${broadcast}`, "user0")
    return { accepted: body.data?.accepted, delivered: body.data?.delivered }
  }
  return {
    registrations: channel.registrations,
    pushes: channel.push,
    first: await view(first),
    second: await view(second)
  }
}

const complete = {
  registrations: 5,
  pushes: 8,
  first: { accepted: 3, delivered: 3 },
  second: { accepted: 5, delivered: 5 }
}

describe("restored copies", { timeout: 90_000 }, () => {
  it("of one moment start as they were, as the documents say", async () => {
    await restoreMixed()
    assert.strictEqual(await refusal(), "")
    await restore(admin, earlier)
    assert.strictEqual(await refusal(), "")
  })

  it("are refused in every other mixture, with the remedy", async () => {
    const mixtures: ReadonlyArray<readonly [RegExp, ReadonlyArray<string>]> = [
      [/BELLCAST_LOG ends at message \d+, but buckets were made from it up to \d+/, [log]],
      [/BELLCAST_WORK ends at message \d+, but buckets/, [work]],
      [/KV_bellcast_registrations is older than KV_bellcast_subs/, ["KV_bellcast_registrations"]],
      [/KV_bellcast_channels is older than/, ["KV_bellcast_channels"]],
      [/WORK has broadcast \d+, but BELLCAST_LOG ends at \d+/, [log, ...buckets]],
      [/WORK ends at message \d+, but BELLCAST_LOG counts outcomes/, [work, ...buckets]]
    ]
    for (const [expected, older] of mixtures) {
      await restoreMixed(...older)
      assert.match(await refusal(), expected, older.join())
      assert.match(await refusal(), /Stop all processes and run `bellcast rebuild`$/)
    }
    await restoreMixed(log)
    const refused = await startService({ natsUrl: nats.url }).catch(({ message }: Error) => message)
    assert.match(String(refused), /cannot start\. the streams and buckets are copies of different/)
  })

  it("without LOG are refused, and without WORK", async () => {
    await restoreMixed()
    await admin.jsm.streams.delete(work)
    assert.match(await refusal(), /BELLCAST_WORK ends at message 0, but buckets/)
    await admin.jsm.streams.delete(log)
    assert.match(
      await refusal(),
      /restore BELLCAST_LOG from its backup and run `bellcast rebuild`$/
    )
  })

  it("with buckets from after the last checkpoint are refused", async () => {
    await restoreMixed()
    const entry = { subject: "$KV.bellcast_channels.later.registrations", seq: 10_000 }
    await admin.nc.request(entry.subject, JSON.stringify({ v: 1, seq: entry.seq }))
    assert.match(await refusal(), /KV_bellcast_channels has message 10000 of BELLCAST_LOG/)
  })

  it("are refused when LOG has grown past the checkpoint with other messages", async () => {
    await restoreMixed(log)
    const { mark } = await metaOf("subscriptions")
    for (let last = 0; last < mark!.seq; )
      last = (await admin.nc.request("bellcast.cmd.broadcast.x.other", "{}")).json<{
        seq: number
      }>().seq
    assert.match(await refusal(), /message \d+ of BELLCAST_LOG is not the one that the buckets/)
  })

  it("serve after a rebuild: LOG older than the rest", async () => {
    await restoreMixed(log)
    await on(rebuild())
    assert.strictEqual(await refusal(), "")
    // A new broadcast gets the number of the one that LOG has lost, and outcomes of its own.
    for (let last = 0; last < Number(second); ) last = Number(await publishDirectly())
    await using service = await startService({ natsUrl: nats.url })
    const again = await finished(service.url, "news", second)
    assert.deepInclude(again, { accepted: 3, delivered: 3 })
    const { first: counts, registrations } = await seen(service.url)
    assert.deepEqual({ counts, registrations }, { counts: complete.first, registrations: 3 })
    const user = await call(service.url, "GET", "/subscriptions", "user0")
    assert.lengthOf(user.body.data, 1)
    await join([service.url], "news", subscriptionsOf(1), 24, "late")
    assert.lengthOf((await call(service.url, "GET", "/subscriptions", "late0")).body.data, 1)
  })

  it("serve after a rebuild: WORK older than the rest, with the counts of lost work", async () => {
    await restoreMixed(work)
    await on(rebuild())
    assert.strictEqual(await refusal(), "")
    await using service = await startService({ natsUrl: nats.url })
    assert.deepInclude(await finished(service.url, "news", third), { accepted: 5, delivered: 5 })
    await until(
      () => seen(service.url),
      ({ pushes }) => pushes >= complete.pushes + 5
    )
    assert.deepStrictEqual(await seen(service.url), { ...complete, pushes: complete.pushes + 5 })
  })
})

it("a process ends when LOG is replaced under it", { timeout: 60_000 }, async () => {
  await restoreMixed()
  await using service = await startService({ natsUrl: nats.url, roles: "gateway" })
  const ended = new Promise((resolve) => service.process.once("exit", resolve))
  await restore(admin, only(earlier, [log]))
  assert.strictEqual(await ended, 1)
  assert.match(service.output(), /BELLCAST_LOG was deleted and created again: this process ends/)
})
