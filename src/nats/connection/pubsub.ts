// What one process tells the others that listen right now: core NATS, not stored. It may be lost, so only what can be learned again belongs here.
import { Context, Effect, Layer, type Scope } from "effect"
import { Nats } from "./connection.ts"

export class PubSub extends Context.Service<
  PubSub,
  {
    /** Says it once, to whoever listens; the speaker hears it too. Never fails: without a connection nobody hears it. */
    readonly tell: (subject: string, body: unknown) => void
    /** Calls `hear` with every body told from now on, until the scope closes. What is not JSON is passed over. */
    readonly listen: (
      subject: string,
      hear: (body: unknown) => void
    ) => Effect.Effect<void, never, Scope.Scope>
  }
>()("bellcast/nats/PubSub") {
  static readonly layer = Layer.effect(
    PubSub,
    Effect.gen(function* () {
      const { nc } = yield* Nats

      const parsed = (json: () => unknown): unknown => {
        try {
          return json()
        } catch {
          return undefined
        }
      }

      return PubSub.of({
        tell: (subject, body) => {
          if (!nc.isClosed() && !nc.isDraining()) nc.publish(subject, JSON.stringify(body))
        },
        listen: (subject, hear) =>
          Effect.acquireRelease(
            Effect.sync(() =>
              nc.subscribe(subject, {
                callback: (error, msg) => {
                  const body = error === null ? parsed(() => msg.json()) : undefined
                  if (body !== undefined) hear(body)
                }
              })
            ),
            (subscription) => Effect.sync(() => subscription.unsubscribe())
          ).pipe(Effect.asVoid)
      })
    })
  )
}
