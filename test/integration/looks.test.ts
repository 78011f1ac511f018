// How often a process asks the server how the streams are.
import { Effect } from "effect"
import { assert, it } from "vitest"
import { provision } from "#nats/admin/provision.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { type Look, StreamWatch } from "#nats/watch/streams.ts"
import { streamNames } from "#streams/index.ts"
import { message } from "../support/appends.ts"
import { until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"

/** A look every 3 s at rest. */
const withinMillis = 15_000

/** Runs a program with all looks that were told so far. */
const withLooks = async <E>(
  program: (looks: ReadonlyArray<Look>) => Effect.Effect<void, E, StreamWatch | EventLog>
) => {
  await using nats = await startNats()
  const run = Effect.gen(function* () {
    const looks: Array<Look> = []
    const { tell } = yield* StreamWatch
    yield* tell((look) => Effect.sync(() => void (look !== undefined && looks.push(look))))
    yield* program(looks)
  })
  await Effect.runPromise(
    Effect.andThen(provision(1), Effect.provide(run, StreamWatch.layer)).pipe(
      Effect.provide(natsLayer({ url: nats.url, name: "test" }))
    )
  )
}

const lastOf = (looks: ReadonlyArray<Look>, isWhole: boolean) =>
  Effect.promise(() =>
    until(
      async () => looks.at(-1)!,
      (look) => look.isWhole === isWhole,
      withinMillis
    )
  )

it("at rest asks for all streams seldom, and as soon as a message came", { timeout: 60_000 }, () =>
  withLooks((looks) =>
    Effect.gen(function* () {
      assert.isTrue(looks[0]!.isWhole)
      const small = yield* lastOf(looks, false)
      assert.sameMembers([...small.streams.keys()], [...streamNames])
      const { seq } = yield* (yield* EventLog).append("log", message(1))
      const whole = yield* lastOf(looks, true)
      assert.equal(whole.streams.get("BELLCAST_LOG")!.state.last_seq, seq)
    })
  )
)

it("asks once for those who ask at the same time", { timeout: 60_000 }, () =>
  withLooks(() =>
    Effect.gen(function* () {
      const { look } = yield* StreamWatch
      const [first, second] = yield* Effect.all([look, look], { concurrency: 2 })
      assert.strictEqual(first, second)
      assert.notStrictEqual(yield* look, first)
    })
  )
)
