// Records the facts of a follower in LOG. Facts without room wait in memory.
import * as Effect from "effect/Effect"
import { factPostponed, type PostponedType } from "#telemetry/nats-metrics.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { type NatsUnavailable, unavailable } from "../connection/errors.ts"
import type { Append } from "../stream/append.ts"
import { EventLog } from "../stream/event-log.ts"

/**
 * With more waiting facts than this the follower stops, and starts again at the first of them. A
 * fact has a few hundred bytes.
 */
const waitingMax = 20_000
/** Facts that are tried again together. If none is stored, there is still no room. */
const retriedAtOnce = 64

interface Fact {
  readonly message: Pick<Append<PostponedType>, "subject" | "type" | "body">
  /** Sequence of the message that the fact is about. */
  readonly seq: number
  readonly stored: () => void
}

export interface Facts {
  /**
   * Stores a fact, which is the only message of its subject. Returns false if LOG has no room: then
   * the fact waits, and `stored` is called when it is stored.
   */
  readonly record: (fact: Fact) => Effect.Effect<boolean, NatsUnavailable>
  /** Whether a fact with this subject is stored. */
  readonly isRecorded: (subject: string) => Effect.Effect<boolean, NatsUnavailable>
  /** Stores the waiting facts, as far as there is room. */
  readonly retry: Effect.Effect<void, NatsUnavailable>
  /** Sequence of the first message with a waiting fact, or Infinity. */
  readonly waitingSince: () => number
}

export const makeFacts = Effect.gen(function* () {
  const log = yield* EventLog
  const waiting = new Map<string, Fact>()
  const warn = makeRateLimitedLog("the log has no room for facts: they wait, and are tried again")

  const store = ({ message }: Fact) =>
    log.once("log", message).pipe(
      Effect.as(true),
      Effect.catchReason("NatsUnavailable", "NoRoom", () => Effect.succeed(false))
    )

  const record = Effect.fnUntraced(function* (fact: Fact) {
    if (yield* store(fact)) return true
    waiting.set(fact.message.subject, fact)
    factPostponed(fact.message.type)
    yield* warn({ type: fact.message.type, waiting: waiting.size })
    if (waiting.size > waitingMax)
      return yield* unavailable("record facts")(new Error(`${waiting.size} facts wait for room`))
    return false
  })

  const retry = Effect.gen(function* () {
    const facts = [...waiting.values()]
    for (let i = 0; i < facts.length; i += retriedAtOnce) {
      const some = facts.slice(i, i + retriedAtOnce)
      const results = yield* Effect.forEach(some, store, { concurrency: retriedAtOnce })
      const done = some.filter((_, n) => results[n])
      for (const fact of done) {
        waiting.delete(fact.message.subject)
        fact.stored()
      }
      if (done.length === 0) break
    }
  })

  return {
    record,
    isRecorded: (subject) => Effect.map(log.last("log", subject), (fact) => fact !== undefined),
    retry,
    waitingSince: () => Math.min(...[...waiting.values()].map(({ seq }) => seq))
  } satisfies Facts
})
