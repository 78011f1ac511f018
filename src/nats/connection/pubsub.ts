// Messages to all running processes over core NATS. They are not stored and may be lost, so use
// them only for what a process can learn in another way too.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { parseJson } from "#basics/json.ts"
import { Nats } from "./connection.ts"
import { textOf } from "./headers.ts"

export class PubSub extends Context.Service<
  PubSub,
  {
    /**
     * Publishes to all subscribers, this process included. Never fails: without a connection nobody
     * receives the message.
     */
    readonly publish: (subject: string, body: unknown) => void
    /**
     * Calls `receive` with each body until the scope closes. Ignores bodies that are not JSON, or
     * nested too deep.
     */
    readonly subscribe: (
      subject: string,
      receive: (body: unknown) => void
    ) => Effect.Effect<void, never, Scope.Scope>
  }
>()("bellcast/nats/PubSub") {
  static readonly layer = Layer.effect(
    PubSub,
    Effect.gen(function* () {
      const { listen, nc } = yield* Nats
      return PubSub.of({
        publish: (subject, body) => {
          if (!nc.isClosed() && !nc.isDraining()) nc.publish(subject, JSON.stringify(body))
        },
        subscribe: (subject, receive) =>
          Effect.acquireRelease(
            Effect.sync(() =>
              listen({
                subject,
                receive: ({ data }) => {
                  const parsed = parseJson(textOf(data))
                  if (typeof parsed === "object") receive(parsed.json)
                }
              })
            ),
            (subscription) => Effect.sync(() => subscription.unsubscribe())
          ).pipe(Effect.asVoid)
      })
    })
  )
}
