// The projector forgets a registration an hour after its end, whatever projectors began since, and
// a channel only while no other projector has begun it anew.
import { Clock, Effect, Fiber, Layer } from "effect"
import { afterAll, assert, beforeAll, it } from "vitest"
import { emptyPushes } from "#domain/outcome.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { natsLayer } from "#nats/layer.ts"
import { EndedMillis, forget, makeForgetEnded } from "#projection/forget.ts"
import { projectionLayer } from "#projection/projector.ts"
import { makeSets } from "#projection/sets.ts"
import { keys } from "#streams/buckets.ts"
import { channelToken, type UserToken } from "#streams/tokens.ts"
import { call, until } from "../support/client.ts"
import { quiet } from "../support/history.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { connectAdmin, type NatsAdmin } from "../support/nats-admin.ts"
import { areOn } from "../support/registration-entries.ts"
import { type Service, startService } from "../support/service.ts"

const hourMillis = 3_600_000

let nats: TestNats
let admin: NatsAdmin
let gateway: Service

beforeAll(async () => {
  nats = await startNats()
  gateway = await startService({ natsUrl: nats.url, roles: "gateway" })
  admin = await connectAdmin(nats.url)
})
afterAll(async () => {
  await admin?.[Symbol.asyncDispose]()
  for (const each of [gateway, nats]) await each?.[Symbol.asyncDispose]()
})

/** The clock of a service, so much later. */
const later = (aheadMillis: () => number): Clock.Clock => {
  const clock = Clock.Clock.defaultValue()
  const currentTimeMillis = Effect.map(clock.currentTimeMillis, (now) => now + aheadMillis())
  return Object.assign(Object.create(clock) as Clock.Clock, { currentTimeMillis })
}

/** The projector of a service, so much later. */
const startProjector = (aheadMillis: number) => {
  const fiber = Effect.runFork(
    Layer.launch(projectionLayer).pipe(
      Effect.provide(natsLayer({ url: nats.url, name: "projector" })),
      Effect.provideService(EndedMillis, hourMillis),
      Effect.provideService(
        Clock.Clock,
        later(() => aheadMillis)
      ),
      Effect.provide(quiet)
    )
  )
  return { [Symbol.asyncDispose]: () => Effect.runPromise(Fiber.interrupt(fiber)).then(() => {}) }
}

const entries = () => areOn(admin, "aged")
const change = async (method: "PUT" | "DELETE") =>
  assert.equal((await call(gateway.url, method, "/channels/aged/registration", "lea")).status, 202)

it("a registration that ended is forgotten an hour later by the projector of then", async () => {
  {
    await using _ = startProjector(0)
    await change("PUT")
    await change("DELETE")
    assert.deepEqual(await entries(), [false])
  }
  await using _ = startProjector(hourMillis)
  await until(entries, (left) => left.length === 0)
}, 60_000)

const inProjector = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.provide(
    Effect.scoped(effect),
    Layer.merge(natsLayer({ url: nats.url, name: "one projector" }), quiet)
  )

/** Which of three registrations are left that ended at 6, 7 and 8, after what a term does. */
const leftOf = (
  name: string,
  endedMillis: number,
  act: (
    forgetEnded: (saved: number) => Effect.Effect<void, unknown>
  ) => Effect.Effect<void, unknown>
) =>
  Effect.gen(function* () {
    const buckets = yield* Buckets
    const all = [6, 7, 8].map((seq) => ({
      seq,
      key: keys.registration(channelToken(name), String(seq).padEnd(22, "_") as UserToken)
    }))
    for (const { key, seq } of all)
      yield* buckets.put("registrations", key, { v: 1, seq, since: seq, on: false, was: 1 }, 0)
    yield* act(yield* makeForgetEnded(yield* makeSets(0, 0)))
    const left = yield* Effect.forEach(all, ({ key }) => buckets.get("registrations", key))
    return all.flatMap(({ seq }, n) => (left[n] === undefined ? [] : seq))
  }).pipe(Effect.provideService(EndedMillis, endedMillis), inProjector)

it("an entry that is no JSON ends no term of the projector", async () => {
  const garbage = Effect.gen(function* () {
    const buckets = yield* Buckets
    const user = "garbage".padEnd(22, "_") as UserToken
    const key = keys.registration(channelToken("garbage"), user)
    yield* buckets.putText("registrations", key, "no JSON", 0)
    yield* buckets.putText("channels", keys.channelPushes(channelToken("garbage")), "no JSON", 0)
  })
  await Effect.runPromise(inProjector(garbage))
  // Several times: the last entries are read twice.
  const forgets = (forgetEnded: (saved: number) => Effect.Effect<void, unknown>) =>
    Effect.repeat(forgetEnded(8), { times: 2 })
  assert.deepEqual(await Effect.runPromise(leftOf("after garbage", 0, forgets)), [])
  {
    await using _ = startProjector(0)
    await change("PUT")
    await change("DELETE")
  }
})

it("a registration stays while a later term would apply its end again", async () => {
  const left = leftOf("saved", 0, (forgetEnded) => forgetEnded(7))
  assert.deepEqual(await Effect.runPromise(left), [8])
})

it("a registration stays for its hour also where the clock of NATS is set forward", async () => {
  let aheadMillis = 0
  const clock = later(() => aheadMillis)
  const left = leftOf("forward", hourMillis, (forgetEnded) => {
    aheadMillis = 2 * hourMillis
    return forgetEnded(8)
  })
  const held = await Effect.runPromise(Effect.provideService(left, Clock.Clock, clock))
  assert.deepEqual(held, [6, 7, 8])
})

it.each([
  [7, true, "that it forgets"],
  [8, false, "that another projector began anew"]
])(
  "pushes since %i are removed by a projector at 7: %s, those of a channel %s",
  async (since, isRemoved) => {
    const channel = channelToken(`since${since}`)
    const key = keys.channelPushes(channel)
    const left = Effect.gen(function* () {
      const buckets = yield* Buckets
      yield* buckets.put("channels", key, emptyPushes(since), 0)
      const sets = yield* makeSets(0, 0)
      sets.unused.add(channel)
      yield* forget(sets, buckets, 7)
      return yield* buckets.get("channels", key)
    })
    const entry = await Effect.runPromise(inProjector(left))
    assert.equal(entry === undefined, isRemoved)
  }
)
