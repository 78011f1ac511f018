// The failures that a start takes for a NATS that is not ready yet.
import { JetStreamApiError } from "@nats-io/jetstream"
import * as Effect from "effect/Effect"
import { assert, it } from "vitest"
import { whenReady } from "#nats/connection/again.ts"
import { unavailable } from "#nats/connection/errors.ts"

const refusal = (err_code: number) =>
  unavailable("provision")(new JetStreamApiError({ code: 404, err_code, description: "refused" }))

/** Fails so the first time, and returns how often it was run. */
const start = (err_code: number) => {
  let tries = 0
  const made = Effect.suspend(() =>
    ++tries === 1 ? Effect.fail(refusal(err_code)) : Effect.succeed(tries)
  )
  return Effect.runPromise(whenReady("streams and buckets", made, 10_000))
}

it("tries again while a stream is not found that another process makes", async () => {
  assert.equal(await start(10_059), 2)
})

it("fails at once where nothing would change", async () => {
  const error: unknown = await start(10_052).catch((error: unknown) => error)
  assert.deepInclude(error, { _tag: "NatsUnavailable", operation: "provision" })
})
