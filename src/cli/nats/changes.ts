// The changes of the state of a broadcast, as verbs show them.
import * as Effect from "effect/Effect"
import { changeIn } from "#domain/broadcast-state.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { printable } from "#telemetry/printable.ts"

interface Change {
  /** `scheduled`, `changed`, `started`, `paused`, `resumed` or `cancelled`. */
  readonly change: string
  /** When NATS stored it: milliseconds since the epoch. */
  readonly at: number
  /** The id of a user, or a word for what made it: see `StateChange`. */
  readonly by: string
}

/** All of them, the oldest first. */
export const stateChangesOf = Effect.fnUntraced(function* (broadcast: number) {
  const changes: Array<Change> = []
  yield* (yield* EventLog).scan("log", [subjects.state(broadcast)], ({ at, message }) => {
    const found = changeIn(message)
    if (found === undefined) return
    changes.push({ change: found.type.replace(/^broadcast\.|\/1$/g, ""), at, by: found.by })
  })
  return changes
})

export const changeLine = ({ at, by, change }: Change): string =>
  `${change} ${new Date(at).toISOString()} by ${printable(by)}`
