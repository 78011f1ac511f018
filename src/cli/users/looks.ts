// The looks of operators at a user.
import * as Effect from "effect/Effect"
import { EventLog } from "#nats/stream/event-log.ts"
import { filters } from "#streams/subjects.ts"
import type { UserToken } from "#streams/tokens.ts"

interface Look {
  readonly looked_at: "user" | "pushes"
  /** Milliseconds since the epoch. */
  readonly at: number
  /** The id of the operator. */
  readonly by: string
  readonly broadcast?: number
}

/** All that are stored of two times (milliseconds since the epoch), the oldest first. */
export const looksAt = Effect.fnUntraced(function* (
  user: UserToken,
  since: number,
  before: number
) {
  const looks: Array<Look> = []
  yield* (yield* EventLog).scan("work", [filters.looksAt(user)], ({ message }) => {
    if (message.type !== "look/1" || message.at < since || message.at >= before) return
    const { type: _, ...look } = message
    looks.push({ looked_at: look.broadcast === undefined ? "user" : "pushes", ...look })
  })
  return looks
})

export const shownLooks = {
  heading: ["LOOKED AT", "AT", "BY", "BROADCAST"],
  cellsOf: ({ at, broadcast, by, looked_at }: Look) => [
    ...[looked_at, new Date(at).toISOString(), by, broadcast]
  ],
  none: ""
}
