// How often a process asks NATS for the state of the streams.
import { Effect } from "effect"
import { assert, it } from "vitest"
import { provision } from "#nats/admin/provision.ts"
import { natsLayer } from "#nats/layer.ts"
import { StreamWatch } from "#nats/watch/streams.ts"
import { startNats } from "../support/nats.ts"

it("asks once for callers at the same time", async () => {
  await using nats = await startNats()
  const program = Effect.gen(function* () {
    const { look } = yield* StreamWatch
    const [first, second] = yield* Effect.all([look, look], { concurrency: 2 })
    assert.strictEqual(first, second)
    assert.notStrictEqual(yield* look, first)
  })
  await Effect.runPromise(
    Effect.andThen(provision(1), Effect.provide(program, StreamWatch.layer)).pipe(
      Effect.provide(natsLayer({ url: nats.url, name: "test" }))
    )
  )
})
