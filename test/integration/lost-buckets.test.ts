// Deleted or outdated buckets: the start reports them, a rebuild repairs them, and no job waits
// forever.
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { provision } from "#nats/admin/provision.ts"
import { acquire, release, renew } from "#nats/follower/lease.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { natsLayer } from "#nats/layer.ts"
import { rebuild } from "#rebuild/rebuild.ts"
import { projections } from "#streams/buckets.ts"
import { quiet } from "#test/history.ts"
import { call, finished, join, publish } from "../support/client.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"
import { useEmptyNats } from "../support/use-service.ts"

const shared = useEmptyNats({ syncAlways: false })
const browsers = 5

/** A replay folds these into one. */
const revisionsMore = 20

/**
 * A broadcast that waits for delivery, to users of whom one has changed subscriptions many times.
 */
const waiting = async (natsUrl: string, push: Awaited<ReturnType<typeof startPushService>>) => {
  const agents = Array.from({ length: browsers }, () => push.subscribe({}))
  await using service = await startService({ natsUrl, roles: "gateway,projection,fanout,tally" })
  await join(
    [service.url],
    "news",
    agents.map(({ subscription }) => subscription)
  )
  const {
    id,
    last_modified: _,
    ...data
  } = (await call(service.url, "GET", "/subscriptions", "user0")).body.data[0]
  for (let n = 0; n < revisionsMore; n++)
    await call(service.url, "PUT", `/subscriptions/${id}`, "user0", { data: { ...data, n } })
  const broadcast = await publish(service.url, "news", { n: 1 })
  await finished(service.url, "empty", await publish(service.url, "empty", { n: 2 }))
  await service.stop()
  return { agents, broadcast }
}

const deleteBuckets = async (natsUrl: string, names: ReadonlyArray<string>) => {
  await using admin = await connectAdmin(natsUrl)
  for (const name of names) await admin.jsm.streams.delete(`KV_bellcast_${name}`)
}

const bucketStreamsOf = async (natsUrl: string) => {
  await using admin = await connectAdmin(natsUrl)
  return await admin.jsm.streams.names("$KV.>").next()
}

const onLog = (natsUrl: string) =>
  Effect.provide(Layer.merge(natsLayer({ url: natsUrl, name: "test" }), quiet))

/** A rebuild that is given up, as a projector holds its lease. */
const refusedRebuild = (natsUrl: string) =>
  Effect.gen(function* () {
    const buckets = yield* Buckets
    const lease = yield* acquire(buckets, "projector", "another")
    const refused = Effect.flip(rebuild())
    const failure = yield* Effect.raceFirst(refused, Effect.orDie(renew(buckets, lease)))
    assert.include(failure.message, "holds the lease of the projector")
    yield* release(buckets, lease)
  }).pipe(onLog(natsUrl), Effect.runPromise)

it("a start without a projection is refused, and a rebuild brings everything back", {
  timeout: 120_000
}, async () => {
  const { nats } = shared
  await using push = await startPushService()
  const { agents, broadcast } = await waiting(nats.url, push)
  await deleteBuckets(nats.url, ["registrations"])
  const refused = await startService({ natsUrl: nats.url }).then(
    (service) => service.kill().then(() => "it started"),
    (error: Error) => error.message
  )
  assert.include(refused, "KV_bellcast_registrations is gone: run `bellcast rebuild`")
  await refusedRebuild(nats.url)
  assert.notInclude(await bucketStreamsOf(nats.url), "KV_bellcast_registrations")
  await Effect.runPromise(rebuild().pipe(onLog(nats.url)))
  await using service = await startService({ natsUrl: nats.url })
  assert.deepInclude(await finished(service.url, "news", broadcast), {
    accepted: browsers,
    delivered: browsers
  })
  assert.isTrue(agents.every(({ received }) => received.length === 1))
})

it("a job that waits for a revision which its bucket no longer has is delivered all the same", {
  timeout: 60_000
}, async () => {
  const { nats } = shared
  await using push = await startPushService()
  const { agents, broadcast } = await waiting(nats.url, push)
  await deleteBuckets(nats.url, projections)
  await Effect.runPromise(provision(1).pipe(onLog(nats.url)))
  await using service = await startService({ natsUrl: nats.url })
  assert.deepInclude(await finished(service.url, "news", broadcast), {
    accepted: browsers,
    delivered: browsers
  })
  assert.isTrue(agents.every(({ received }) => received.length === 1))
})
