// How many requests to NATS the first subscription of a user takes.
import { Effect, Fiber } from "effect"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { endpointHash } from "#domain/subscription/owners.ts"
import { provision } from "#nats/admin/provision.ts"
import { Nats } from "#nats/connection/connection.ts"
import { natsLayer } from "#nats/layer.ts"
import { bucketStream, bucketSubject, keys, metaKey } from "#streams/buckets.ts"
import { call } from "../support/client.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { connectAdmin, type NatsAdmin, readsOf } from "../support/nats-admin.ts"
import { type PushService, startPushService } from "../support/push-service.ts"
import { type Service, startService } from "../support/service.ts"
import { tokenOf } from "../support/users.ts"

let nats: TestNats
let push: PushService
let service: Service
let admin: NatsAdmin

beforeAll(async () => {
  nats = await startNats({ syncAlways: false })
  push = await startPushService()
  const env = { BELLCAST_NEW_USERS_PER_ADDRESS_PER_HOUR_MAX: "1000" }
  service = await startService({ natsUrl: nats.url, env })
  admin = await connectAdmin(nats.url)
})
afterAll(async () => {
  await admin[Symbol.asyncDispose]()
  for (const each of [service, push, nats]) await each[Symbol.asyncDispose]()
})

const store = async (user: string) => {
  const { subscription } = push.subscribe()
  const { status } = await call(service.url, "POST", "/subscriptions", user, { data: subscription })
  assert.equal(status, 201)
  return subscription.endpoint
}

const naming = (reads: ReadonlyArray<string>, ...names: ReadonlyArray<string>) =>
  reads.filter((read) => names.some((name) => read.includes(name))).length

describe("the first subscription of a user", { timeout: 60_000 }, () => {
  it("reads the list of the user once, and the page of the endpoint twice", async () => {
    let endpoint = ""
    const reads = await readsOf(admin, async () => {
      endpoint = await store("ann")
    })
    const list = bucketSubject("subscriptions", keys.subscriptions(tokenOf("ann")))
    assert.equal(naming(reads, list), 1)
    assert.equal(naming(reads, keys.endpointOwners(endpointHash(endpoint))), 2)
  })

  it("shares requests with those of other users at the same moment", async () => {
    const users = Array.from({ length: 80 }, (_, n) => `many${n}`)
    const reads = await readsOf(admin, () => Promise.all(users.map(store)))
    // The gateway reads each page by itself.
    assert.isBelow(naming(reads, "=endpoints."), 1.5 * users.length)
    // A multi-get reads `meta`, too. How many users share depends on when they arrive.
    const single = reads.filter((read) => !read.includes("multi_last"))
    const metas = (["subscriptions", "registrations"] as const).map((bucket) =>
      bucketSubject(bucket, metaKey)
    )
    assert.isBelow(naming(single, ...metas), users.length)
  })
})

it("sends equal reads of one turn once, and responds to all that still wait", async () => {
  const program = Effect.gen(function* () {
    yield* provision(1)
    const { message, nc } = yield* Nats
    const of = (bucket: "channels" | "subscriptions") =>
      message(bucketStream(bucket), { last_by_subj: bucketSubject(bucket, metaKey) })
    const before = nc.stats().outMsgs
    const begin = { startImmediately: true } as const
    const [first, second, third] = [
      yield* Effect.forkChild(of("subscriptions"), begin),
      yield* Effect.forkChild(of("subscriptions"), begin),
      yield* Effect.forkChild(of("subscriptions"), begin)
    ]
    const other = yield* Effect.forkChild(of("channels"), begin)
    yield* Fiber.interrupt(first)
    const [same, found, another] = [
      yield* Fiber.join(second),
      yield* Fiber.join(third),
      yield* Fiber.join(other)
    ]
    assert.equal(nc.stats().outMsgs - before, 2)
    assert.equal(found?.subject, bucketSubject("subscriptions", metaKey))
    assert.deepEqual(same, found)
    assert.equal(another?.subject, bucketSubject("channels", metaKey))
    // The next read asks again.
    yield* of("subscriptions")
    assert.equal(nc.stats().outMsgs - before, 3)
  })
  await Effect.runPromise(program.pipe(Effect.provide(natsLayer({ url: nats.url, name: "test" }))))
})
