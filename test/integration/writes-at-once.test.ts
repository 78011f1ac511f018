// Writes of one user at the same time: each decides on the state that the one before it left.
import { Effect, Layer } from "effect"
import { assert, describe, it } from "vitest"
import type { RegistrationCommand } from "#domain/registration.ts"
import { ok } from "#gateway/http/response.ts"
import { RequestRates } from "#gateway/quotas.ts"
import { changed, changeRegistration, type Writer } from "#gateway/write.ts"
import { Space } from "#nats/watch/space.ts"
import { channelToken, type UserToken } from "#streams/tokens.ts"
import { foldingLayer } from "../support/history.ts"
import { userOf } from "../support/history-commands.ts"
import { useEmptyNats } from "../support/use-service.ts"

const shared = useEmptyNats()

/** Ending a registration counts for nobody, and needs no room. */
const noLimits = Layer.merge(
  Layer.succeed(RequestRates, {} as RequestRates["Service"]),
  Layer.succeed(Space, {} as Space["Service"])
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
    assert.deepEqual(refused, Array(7).fill("too-many-at-once"))
  })
})
