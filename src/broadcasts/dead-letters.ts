// Dead letters, the pushes that were given up, in pages from WORK.
import * as Effect from "effect/Effect"
import { mapInTurns } from "#clock/map-in-turns.ts"
import type { DeadLetter } from "#domain/job.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { filters } from "#streams/subjects.ts"

/** Dead letters that are read at once, in 200 KB. */
const readMax = 500
/** Dead letters of a page. They are decoded for about 200 ms, in turns. */
const pageMax = 20 * readMax

const lettersIn = ({ message }: Stored): ReadonlyArray<DeadLetter> =>
  message.type === "dead/1" ? [message] : []

/**
 * Dead letters of a broadcast, or of all, the oldest first: those in WORK from the sequence `from`
 * on. `next`: from which the list goes on; undefined: it is complete.
 */
export const listDeadLetters = Effect.fnUntraced(function* (
  broadcast: number | undefined,
  from: number
) {
  const log = yield* EventLog
  const filter = broadcast === undefined ? filters.deadLetters : filters.deadLettersOf(broadcast)
  const rows: Array<DeadLetter> = []
  let next = from
  for (let read = 0; read < pageMax; read += readMax) {
    const messages = yield* log.following("work", filter, { from: next, limit: readMax })
    rows.push(...(yield* mapInTurns(messages, lettersIn)).flat())
    if (messages.length < readMax) return { rows, next: undefined }
    next = messages.at(-1)!.seq + 1
  }
  return { rows, next }
})
