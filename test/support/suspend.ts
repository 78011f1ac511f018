// Suspends a subscription, as a worker does after strikes.
import { Effect } from "effect"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { tokenOf } from "./users.ts"

/** `id`: of the subscription that the last command of the user stored. */
export const suspend = (natsUrl: string, user: string, id: string) =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const subject = subjects.subscription(tokenOf(user))
    const generation = (yield* log.last("log", subject))!.seq
    const by = { broadcast: 1, cause: "endpoint-not-allowed", worker: "w", at: Date.now() } as const
    const body = { id, generation, ...by }
    yield* log.append("log", { subject, type: "subscription.suspended", body })
  }).pipe(Effect.provide(natsLayer({ url: natsUrl, name: "test" })), Effect.runPromise)
