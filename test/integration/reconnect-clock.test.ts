// A connection to NATS that is lost after the clock was set back by an hour.
import { Effect, Layer } from "effect"
import { assert, it } from "vitest"
import { provision } from "#nats/admin/provision.ts"
import { Nats } from "#nats/connection/connection.ts"
import { natsLayer } from "#nats/layer.ts"
import { quiet } from "../support/history.ts"
import { startNats } from "../support/nats.ts"

interface Dialled {
  readonly protocol: { readonly servers: { getServers(): Array<{ lastConnect: number }> } }
}

it("comes back as soon as the server does", { timeout: 60_000 }, async () => {
  await using nats = await startNats()
  const program = Effect.gen(function* () {
    yield* provision(1)
    const { message, nc } = yield* Nats
    const servers = (nc as unknown as Dialled).protocol.servers.getServers()
    assert.isNotEmpty(servers)
    // As after a dial by a clock that was an hour ahead.
    for (const server of servers) server.lastConnect = Date.now() + 3_600_000
    yield* Effect.promise(async () => {
      await nats.kill()
      await nats.restart()
    })
    const read = message("BELLCAST_LOG", { seq: 1 })
    assert.isUndefined(yield* Effect.retry(read, { times: 3 }))
  })
  await Effect.runPromise(
    Effect.provide(program, Layer.merge(natsLayer({ url: nats.url, name: "test" }), quiet))
  )
})
