// Reads the jobs or the outcomes of a broadcast, and does something with each, several at a time.
import * as Effect from "effect/Effect"
import type { Message } from "#domain/messages.ts"
import type { NatsUnavailable } from "#nats/connection/errors.ts"
import { HandlerProgress } from "#nats/stream/consumer.ts"
import type { EventLog } from "#nats/stream/event-log.ts"

/** Messages that are handled at the same time. */
const atOnce = 64

type Kind = "shard/1" | "retry/1" | "outcome/1"

export interface StoredMessage<T extends Kind> {
  readonly message: Message<T>
  readonly subject: string
  readonly storedAt: number
}

export const eachMessage = Effect.fnUntraced(function* <T extends Kind>(
  log: EventLog["Service"],
  type: T,
  filter: string,
  each: (stored: StoredMessage<T>) => Effect.Effect<void, NatsUnavailable>
) {
  let some: Array<StoredMessage<T>> = []
  const handleSome = Effect.suspend(() => {
    const list = some
    some = []
    return Effect.forEach(list, each, { concurrency: atOnce, discard: true }).pipe(
      Effect.andThen(Effect.flatMap(HandlerProgress, ({ goesOn }) => goesOn))
    )
  })
  yield* log.replay("work", [filter], ({ at, message, subject }) => {
    if (message.type === type) some.push({ message: message as Message<T>, subject, storedAt: at })
    return some.length < atOnce ? undefined : handleSome
  })
  yield* handleSome
})
