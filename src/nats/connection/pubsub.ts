// Messages to all running processes over core NATS. They are not stored and may be lost, so use
// them only for what a process can learn in another way too.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { Nats } from "./connection.ts"

export class PubSub extends Context.Service<
  PubSub,
  {
    /**
     * Publishes to all subscribers, this process included. Never fails: without a connection nobody
     * receives the message.
     */
    readonly publish: (subject: string, body: unknown) => void
    /** Calls `receive` with each body until the scope closes. Ignores bodies that are not JSON. */
    readonly subscribe: (
      subject: string,
      receive: (body: unknown) => void
    ) => Effect.Effect<void, never, Scope.Scope>
  }
>()("bellcast/nats/PubSub") {
  static readonly layer = Layer.effect(
    PubSub,
    Effect.gen(function* () {
      const { nc } = yield* Nats
      return PubSub.of({
        publish: (subject, body) => {
          if (!nc.isClosed() && !nc.isDraining()) nc.publish(subject, JSON.stringify(body))
        },
        subscribe: (subject, receive) =>
          Effect.acquireRelease(
            Effect.sync(() =>
              nc.subscribe(subject, {
                callback: (error, msg) => {
                  const body = error === null ? parsed(() => msg.json()) : undefined
                  if (body !== undefined) receive(body)
                }
              })
            ),
            (subscription) => Effect.sync(() => subscription.unsubscribe())
          ).pipe(Effect.asVoid)
      })
    })
  )
}

const parsed = (json: () => unknown): unknown => {
  try {
    return json()
  } catch {
    return undefined
  }
}
