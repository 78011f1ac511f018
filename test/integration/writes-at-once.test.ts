// Writes of one user at the same time: each decides on the state that the one before it left.
import { Effect, Layer } from "effect"
import { assert, describe, it } from "vitest"
import type { Registration, RegistrationCommand } from "#domain/registration.ts"
import { ok, refuse } from "#gateway/http/response.ts"
import { RequestRates } from "#gateway/quotas.ts"
import { changed, changeRegistration, unchanged, type Writer } from "#gateway/write.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { Space } from "#nats/watch/space.ts"
import { subjects } from "#streams/subjects.ts"
import { channelToken, type UserToken } from "#streams/tokens.ts"
import { foldingLayer } from "../support/history.ts"
import { userOf } from "../support/history-commands.ts"
import { useEmptyNats } from "../support/use-service.ts"

const shared = useEmptyNats()

/** Ending a registration counts for nobody, and needs no room. */
const noLimits = Layer.merge(
  Layer.succeed(RequestRates, {} as RequestRates["Service"]),
  Layer.succeed(Space, { isFull: () => false } as unknown as Space["Service"])
)

const run = <A, E>(program: Effect.Effect<A, E, Needs>) =>
  Effect.runPromise(
    program.pipe(Effect.provide(Layer.merge(foldingLayer(shared.nats.url), noLimits)))
  )
type Needs = Layer.Success<ReturnType<typeof foldingLayer> | typeof noLimits>

const writerOf = (user: UserToken) => {
  const caller = { id: user, user, policy: "test", verified: true, principals: [] }
  return { caller, user: caller, request: { address: "192.0.2.1" } } as unknown as Writer
}
const ends: RegistrationCommand = { type: "registration.delete", user: "user", at: 1 }
const done = ok("done")

describe("a write that finds nothing to change", { timeout: 60_000 }, () => {
  /** As a gateway reads it in the moment before the projection applies what LOG has already. */
  const readsBehind = Layer.effect(
    Buckets,
    Effect.map(Buckets, (own) => {
      let reads = 0
      const get: typeof own.get = (...place) =>
        ++reads === 1 ? Effect.undefined : own.get(...place)
      return Buckets.of({ ...own, get })
    })
  )

  it.for(["an answer", "a 404"] as const)("of %s decides on all that LOG has", async (kind) => {
    const [channel, user] = [channelToken("news"), userOf(4)]
    const seen: Array<boolean> = []
    const decide = (registration: Registration | undefined) => {
      seen.push(registration?.on === true)
      if (registration?.on) return Effect.succeed(changed(ends, done))
      return kind === "a 404" ? refuse("unknown-object") : Effect.succeed(unchanged(done))
    }
    const write = changeRegistration(channel, writerOf(user), decide)
    const program = Effect.gen(function* () {
      const { append, last } = yield* EventLog
      const subject = subjects.registration(channel, user)
      yield* append("log", { subject, type: "registration.put", body: { user: "user", at: 1 } })
      yield* write.pipe(Effect.provide(readsBehind))
      return (yield* last("log", subject))?.message.type
    })
    assert.equal(await run(program), "registration.delete")
    assert.deepEqual(seen, [false, true])
  })

  it("reads LOG once more, and no more than that", async () => {
    const write = changeRegistration(channelToken("news"), writerOf(userOf(5)), () =>
      Effect.succeed(unchanged(done))
    )
    let reads = 0
    const counting = Layer.effect(
      EventLog,
      Effect.map(EventLog, (own) => {
        const last: typeof own.last = (...place) => {
          reads++
          return own.last(...place)
        }
        return EventLog.of({ ...own, last })
      })
    )
    await run(write.pipe(Effect.provide(counting)))
    assert.equal(reads, 1)
  })
})

describe("writes of one user at the same time", { timeout: 60_000 }, () => {
  it("are decided once each, and those of other users do not wait for them", async () => {
    const [user, other] = [userOf(1), userOf(2)]
    const channel = channelToken("news")
    const order: Array<string> = []
    const write = (of: UserToken) =>
      changeRegistration(channel, writerOf(of), () =>
        Effect.sync(() => {
          order.push(of)
          return changed(ends, done)
        })
      )
    const writes = [...Array.from({ length: 30 }, () => write(user)), write(other)]
    const all = await run(Effect.all(writes, { concurrency: "unbounded" }))
    assert.lengthOf(all, 31)
    assert.lengthOf(order, 31)
    assert.isBelow(order.indexOf(other), 3)
  })

  it("are refused beyond those that may wait", async () => {
    const write = changeRegistration(channelToken("news"), writerOf(userOf(3)), () =>
      Effect.succeed(changed(ends, done))
    )
    const writes = Array.from({ length: 40 }, () =>
      write.pipe(Effect.catchTag("Refused", ({ response }) => Effect.succeed(response)))
    )
    const all = await run(Effect.all(writes, { concurrency: "unbounded" }))
    const refused = all.flatMap(({ error }) => error ?? [])
    assert.deepEqual(refused, Array(7).fill("too-many-writes"))
  })
})
