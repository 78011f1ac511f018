// Finds old messages of LOG that belong to no broadcast: the last changes of letters to erased
// users, and parts that a gateway stored before it failed. Reads only.
import * as Effect from "effect/Effect"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { filters } from "#streams/subjects.ts"

/** An erasure leaves one change of a letter, or two. */
const changesMax = 10

/** The changes of a broadcast that LOG does not have, if all are old; undefined: it has it. */
export const leftChanges = Effect.fnUntraced(function* (
  subject: string,
  broadcast: number,
  before: number
) {
  const { at, following } = yield* EventLog
  if ((yield* at("log", broadcast)) !== undefined) return undefined
  const found = yield* following("log", subject, { from: 1, limit: changesMax })
  return found.every((each) => each.at < before) ? found : undefined
})

/**
 * A part is named in the request that stores it, or in a repetition of that within an hour: so long
 * NATS knows the names of messages. A day leaves room for processes that stood still.
 */
const namedMillis = 24 * 60 * 60_000
/** Most parts are named by the next messages. */
const readAtOnce = 50

/**
 * Whether a part is named by no broadcast and no change that followed it. One that is named goes
 * with its broadcast; the broadcast stays as long as a redrive names the part.
 */
export const isUnnamed = Effect.fnUntraced(function* (part: Stored) {
  const { following } = yield* EventLog
  for (const filter of [filters.broadcasts, filters.states])
    for (let from = part.seq + 1; ; ) {
      const some = yield* following("log", filter, { from, limit: readAtOnce })
      const soon = some.filter(({ at }) => at < part.at + namedMillis)
      if (soon.some((each) => names(each, part.seq))) return false
      if (soon.length < some.length || some.length === 0) break
      from = some.at(-1)!.seq + 1
    }
  return true
})

const names = ({ message }: Stored, part: number): boolean =>
  "parts" in message && (message.parts ?? []).includes(part)
