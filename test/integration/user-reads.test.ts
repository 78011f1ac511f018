// What an operator reads of a user takes turns with the lists of broadcasts: each holds megabytes.
import { Effect } from "effect"
import { assert, it } from "vitest"
import { listsAtOnce } from "#gateway/broadcasts/broadcast-list.ts"
import { personOf } from "#gateway/users/user-get.ts"
import { natsLayer } from "#nats/layer.ts"
import { startNats } from "../support/nats.ts"
import { startService } from "../support/service.ts"
import { idOf, tokenOf } from "../support/users.ts"

it("reads the broadcasts to a user when a list has ended", { timeout: 60_000 }, async () => {
  await using nats = await startNats()
  await using _service = await startService({ natsUrl: nats.url, roles: "gateway,projection" })
  const read = personOf({ id: idOf("anna"), user: tokenOf("anna") })
  const program = Effect.gen(function* () {
    yield* listsAtOnce.take(2)
    const early = yield* Effect.timeoutOption(read, "1 second")
    assert.equal(early._tag, "None")
    yield* listsAtOnce.release(2)
    assert.deepInclude(yield* read, { registrations: 0, pushes: [] })
  })
  const layer = natsLayer({ url: nats.url, name: "test" })
  await Effect.runPromise(program.pipe(Effect.provide(layer), Effect.scoped))
})
