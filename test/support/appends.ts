// Many appends at the same time, and what became of them.
import { Effect, type Scope } from "effect"
import { provision } from "#nats/admin/provision.ts"
import type { Nats } from "#nats/connection/connection.ts"
import type { Buckets } from "#nats/kv/bucket.ts"
import { natsLayer } from "#nats/layer.ts"
import type { Append } from "#nats/stream/append.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { filters, subjects } from "#streams/subjects.ts"
import { channelToken } from "#streams/tokens.ts"
import { useEmptyNats } from "./use-service.ts"

/** Of a channel of its own, where nothing may stand yet. */
export const message = (n: number): Append<"broadcast"> => ({
  subject: subjects.broadcast("rest", channelToken(`channel-${n}`)),
  type: "broadcast",
  body: { data: { n } },
  expect: 0
})

export const upTo = (count: number, from = 0) =>
  Array.from({ length: count }, (_, n) => message(from + n))

/** All at the same time. */
export const appendAll = (messages: ReadonlyArray<Append<"broadcast">>) =>
  Effect.flatMap(EventLog, (log) =>
    Effect.forEach(messages, (one) => Effect.result(log.append("log", one)), {
      concurrency: "unbounded"
    })
  )

export const stored = Effect.flatMap(EventLog, (log) => {
  const found: Array<Stored> = []
  return log
    .replay("log", [filters.broadcasts], (one) => Effect.sync(() => found.push(one)))
    .pipe(Effect.as(found))
})

export const subjectsOf = (found: ReadonlyArray<Pick<Stored, "subject">>) =>
  found.map(({ subject }) => subject).toSorted()
export const isBatched = ({ header }: Stored) => header("Nats-Batch-Id") !== undefined

/** Runs with a connection of its own, as the next batches of a connection depend on its last. */
export const withLogAt = (
  url: string,
  program: Effect.Effect<void, unknown, EventLog | Buckets | Nats | Scope.Scope>
) =>
  Effect.runPromise(
    Effect.andThen(provision(1), program).pipe(
      Effect.provide(natsLayer({ url, name: "test" })),
      Effect.scoped
    )
  )

/** The same with one nats-server for all cases of a file, whose LOG is empty for each of them. */
export const useLog = () => {
  const shared = useEmptyNats()
  return (program: Parameters<typeof withLogAt>[1]) => withLogAt(shared.nats.url, program)
}
