// The embedded nats-server of this process: the process ends with it, and restarts it when it
// stores nothing any more.
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { revive } from "#embedded/revive.ts"
import { type EmbeddedServer, embeddedServer } from "#embedded/server.ts"
import { ServerHealth } from "#nats/watch/server-health.ts"

/** Starts the embedded nats-server. If it ends, this process ends too. */
export const startEmbedded = Effect.fnUntraced(function* (dataDir: string) {
  const server = yield* embeddedServer(dataDir)
  yield* Effect.promise(() => server.ended).pipe(
    Effect.andThen((ended) => Effect.logFatal("the embedded nats-server has ended", ended)),
    Effect.andThen(Effect.sync(() => process.exit(1))),
    Effect.forkScoped
  )
  return server
})

/** Restarts the embedded nats-server, if there is one, when it stores nothing any more. */
export const revivedLayer = (embedded: Option.Option<EmbeddedServer>) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const health = yield* ServerHealth
      if (Option.isSome(embedded))
        yield* revive(embedded.value, () => health.trouble() !== undefined)
    })
  )
