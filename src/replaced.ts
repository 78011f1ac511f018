// Ends the process when LOG or WORK is replaced under it: caches, leases and checkpoints belong to
// the former stream, and outcomes must not enter the new one.
import * as Effect from "effect/Effect"
import { untilReplaced } from "#nats/watch/replaced.ts"

/** Watches until the scope closes. */
export const endWhenReplaced = untilReplaced.pipe(
  Effect.flatMap((reason) =>
    Effect.logFatal(
      `${reason}: this process ends. Stop all processes before you restore streams; ` +
        "the next start says whether they fit together"
    )
  ),
  Effect.andThen(Effect.sync(() => process.exit(1))),
  Effect.forkScoped
)
