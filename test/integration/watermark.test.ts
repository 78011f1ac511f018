// The watermark of the projection, where its announcements do not come: who is asked, how often,
// and what if somebody answers with something else.
import { Effect } from "effect"
import { assert, it } from "vitest"
import { Watermark } from "#nats/follower/watermark.ts"
import { natsLayer } from "#nats/layer.ts"
import { subjects } from "#streams/subjects.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { useEmptyNats } from "../support/use-service.ts"

const shared = useEmptyNats({ syncAlways: false })

/** Answers the requests for the watermark with `answer`, and counts them. */
const respond = async (answer: () => string | undefined) => {
  const admin = await connectAdmin(shared.nats.url)
  let asked = 0
  admin.nc.subscribe(subjects.appliedGet, {
    callback: (_, msg) => {
      asked += 1
      const text = answer()
      if (text !== undefined) msg.respond(text)
    }
  })
  await admin.nc.flush()
  return { asked: () => asked, [Symbol.asyncDispose]: () => admin[Symbol.asyncDispose]() }
}

const run = <A, E>(program: Effect.Effect<A, E, Watermark>) => {
  const layer = natsLayer({ url: shared.nats.url, name: "test" })
  return Effect.runPromise(program.pipe(Effect.provide(layer)))
}

it.each(["no JSON", '{"log":"many"}'])("does not believe the answer %s", async (text) => {
  await using projector = await respond(() => text)
  const error = await run(
    Effect.flatMap(Watermark, (watermark) => Effect.flip(watermark.reached(1, 800)))
  )
  assert.deepEqual(error.reason, { _tag: "NotApplied", seq: 1 })
  assert.isAbove(projector.asked(), 1)
})

it("asks once for all its waiters while the projector does not answer", async () => {
  let text: string | undefined
  await using projector = await respond(() => text)
  const many = 50
  await run(
    Effect.gen(function* () {
      const watermark = yield* Watermark
      // Each begins at a moment of its own, as requests do.
      const waiters = Array.from({ length: many }, (_, n) =>
        Effect.delay(Effect.flip(watermark.reached(1, 800)), 2 * n)
      )
      yield* Effect.all(waiters, { concurrency: "unbounded" })
      assert.isAbove(projector.asked(), 0)
      assert.isBelow(projector.asked(), many / 2)

      text = JSON.stringify({ log: 7, floor: { subscriptions: 1, registrations: 1 } })
      const reached = [1, 7].map((seq) => watermark.reached(seq, 10_000))
      const seen = yield* Effect.all(reached, { concurrency: "unbounded" })
      assert.deepEqual(
        seen.map(({ log }) => log),
        [7, 7]
      )
    })
  )
})
