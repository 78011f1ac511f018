// More registrations than one response of the server holds.
import { Effect } from "effect"
import { assert, it } from "vitest"
import { provision } from "#nats/admin/provision.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { natsLayer } from "#nats/layer.ts"
import { keys } from "#streams/buckets.ts"
import { channelToken } from "#streams/tokens.ts"
import { registrationsUnder } from "#subscriptions/audience.ts"
import { startNats } from "../support/nats.ts"
import { tokenOf } from "../support/users.ts"

it("registrations are all read, on however many channels they are", {
  timeout: 60_000
}, async () => {
  await using nats = await startNats({ syncAlways: false })
  const channels = ["a", "b", "c", "nobody's"].map(channelToken)
  const stored = Array.from({ length: 2_600 }, (_, i) =>
    // The first channel alone has more registrations than a response holds.
    keys.registration(channels[i < 1_500 ? 0 : i % 3]!, tokenOf(`user${i}`))
  )
  const program = Effect.gen(function* () {
    yield* provision(1)
    const buckets = yield* Buckets
    const value = { v: 1, seq: 1, since: 1, on: true, was: 0 } as const
    const revisions = yield* Effect.forEach(
      stored,
      (key) => buckets.put("registrations", key, value, 0),
      { concurrency: 64 }
    )
    const filters = channels.map((channel) => keys.registrationsOf(channel, "all"))
    const entries = yield* registrationsUnder(buckets, filters, Math.max(...revisions))
    assert.deepEqual(entries.map(({ key }) => key).sort(), stored.toSorted())
  })
  await Effect.runPromise(
    Effect.scoped(program).pipe(Effect.provide(natsLayer({ url: nats.url, name: "test" })))
  )
})
