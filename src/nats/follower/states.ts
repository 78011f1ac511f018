// Follows the changes of the states of broadcasts in LOG, so that planner and workers obey them
// without a request for each job or push: within milliseconds, while NATS responds.
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import { changeIn, type Order, orderOf, type StateChange } from "#domain/broadcast-state.ts"
import type { BroadcastRef } from "#domain/job.ts"
import { streams } from "#streams/index.ts"
import { filters } from "#streams/subjects.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { Nats } from "../connection/connection.ts"
import { unavailable } from "../connection/errors.ts"
import { EventLog } from "../stream/event-log.ts"
import type { Stored } from "../stream/stored.ts"
import { arrival, openInbox, takeBatch } from "./inbox.ts"

const again = Schedule.spaced("250 millis")

export class States extends Context.Service<
  States,
  {
    /** The present order for a job. */
    readonly orderOf: (job: Pick<BroadcastRef, "broadcast" | "run">) => Order
    /** The present run of a broadcast. */
    readonly runOf: (broadcast: number) => number
    /** Returns when every change that LOG had at the start of this process is known. */
    readonly known: Effect.Effect<void>
  }
>()("bellcast/nats/States") {
  static readonly layer = Layer.effect(
    States,
    Effect.gen(function* () {
      const changes: Changes = new Map()
      const latch = Latch.makeUnsafe()
      const warn = makeRateLimitedLog("states of broadcasts cannot be followed", Effect.logError)
      yield* follow(changes, latch).pipe(
        Effect.tapError(({ cause }) => warn({ reason: String(cause) })),
        Effect.retry(again),
        Effect.forkScoped
      )
      return States.of({
        orderOf: ({ broadcast, run }) => orderOf(changes.get(broadcast)?.change, run),
        runOf: (broadcast) => changes.get(broadcast)?.change.run ?? 0,
        known: latch.await
      })
    })
  )
}

interface Stamped {
  readonly change: StateChange
  readonly seq: number
  readonly at: number
}

/** The last change of each broadcast, as long as WORK has jobs of it. The oldest are first. */
type Changes = Map<number, Stamped>

const add = (changes: Changes, { at, message, seq }: Stored, now: number): void => {
  const change = message.type === "malformed" ? undefined : changeIn(message)
  // A second reading begins with changes that later ones have overtaken.
  if (change === undefined || seq <= (changes.get(change.broadcast)?.seq ?? 0)) return
  changes.delete(change.broadcast)
  changes.set(change.broadcast, { change, seq, at })
  for (const [broadcast, then] of changes) {
    if (then.at >= now - streams.work.maxAgeMillis) break
    changes.delete(broadcast)
  }
}

/** Reads all changes, then each that comes. Fails when some may be missing. */
const follow = Effect.fnUntraced(function* (changes: Changes, latch: Latch.Latch) {
  const { js } = yield* Nats
  let from = 0
  const began = yield* Clock.currentTimeMillis
  yield* (yield* EventLog).replay("log", [filters.states], (stored) => {
    from = stored.seq
    add(changes, stored, began)
  })
  yield* latch.open
  const followed = { stream: "log", filters: [filters.states] } as const
  const inbox = yield* openInbox(js, "states of broadcasts", followed, from)
  while (!inbox.ended) {
    yield* arrival(inbox)
    const now = yield* Clock.currentTimeMillis
    while (inbox.waiting.length > 0)
      for (const stored of takeBatch(inbox)) add(changes, stored, now)
  }
  return yield* unavailable("follow states")(new Error("the stream ended"))
}, Effect.scoped)
