// The watermark of the projection, where somebody answers with something else.
import { Effect } from "effect"
import { assert, it } from "vitest"
import { Watermark } from "#nats/follower/watermark.ts"
import { natsLayer } from "#nats/layer.ts"
import { subjects } from "#streams/subjects.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { useEmptyNats } from "../support/use-service.ts"

const shared = useEmptyNats({ syncAlways: false })

it.each(["no JSON", '{"log":"many"}'])("does not believe the answer %s", async (text) => {
  await using admin = await connectAdmin(shared.nats.url)
  let asked = 0
  admin.nc.subscribe(subjects.appliedGet, {
    callback: (_, msg) => {
      asked += 1
      msg.respond(text)
    }
  })
  await admin.nc.flush()
  const waits = Effect.gen(function* () {
    return yield* Effect.flip((yield* Watermark).reached(1, 800))
  })
  const layer = natsLayer({ url: shared.nats.url, name: "test" })
  const error = await Effect.runPromise(waits.pipe(Effect.provide(layer)))
  assert.deepEqual(error.reason, { _tag: "NotApplied", seq: 1 })
  assert.isAbove(asked, 1)
})
