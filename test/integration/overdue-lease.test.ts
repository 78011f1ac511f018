// A lease that nats-server does not end: one that was killed may bring a former renewal back. And
// what a process says of a follower whose lease it has no more.
import { jetstream } from "@nats-io/jetstream"
import { Effect, Fiber, Layer } from "effect"
import { assert, it } from "vitest"
import { provision } from "#nats/admin/provision.ts"
import { Nats } from "#nats/connection/connection.ts"
import { natsLayer } from "#nats/layer.ts"
import { projectionLayer } from "#projection/projector.ts"
import { bucketSubject, keys } from "#streams/buckets.ts"
import { subjects } from "#streams/subjects.ts"
import { finished, join, publish, until } from "../support/client.ts"
import { quiet } from "../support/history.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"

it("is taken from a process that does not renew it", { timeout: 90_000 }, async () => {
  await using nats = await startNats()
  await using push = await startPushService()
  await using admin = await connectAdmin(nats.url)
  const before = await startService({ natsUrl: nats.url })
  await before[Symbol.asyncDispose]()
  const lease = JSON.stringify({ v: 1, holder: "a process that is gone" })
  for (const follower of ["projector", "tally"])
    await jetstream(admin.nc).publish(bucketSubject("cache", keys.lease(follower)), lease)
  await using service = await startService({ natsUrl: nats.url })
  await join([service.url], "news", [push.subscribe().subscription])
  await finished(service.url, "news", await publish(service.url, "news", { n: 1 }))
})

it("a process whose projector ended says no more how far the projector is", async () => {
  await using nats = await startNats({ syncAlways: false })
  const program = Effect.gen(function* () {
    yield* provision(1)
    const { nc } = yield* Nats
    const responds = () =>
      nc.request(subjects.appliedGet, undefined, { timeout: 250 }).then(
        () => true,
        () => false
      )
    const projector = yield* Effect.forkChild(Layer.launch(projectionLayer))
    yield* Effect.promise(() => until(responds, Boolean))
    yield* Fiber.interrupt(projector)
    assert.isFalse(yield* Effect.promise(responds))
  })
  const services = Layer.merge(natsLayer({ url: nats.url, name: "test" }), quiet)
  await Effect.runPromise(program.pipe(Effect.provide(services)))
})
