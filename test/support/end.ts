// Ends a subscription, as a worker does when a push service calls it gone.
import { Effect } from "effect"
import { Buckets } from "#nats/kv/bucket.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { keys } from "#streams/buckets.ts"
import { subjects } from "#streams/subjects.ts"
import { call, until } from "./client.ts"
import { tokenOf } from "./users.ts"

/** Resolves when the service at `url` does not list it any more. */
export const end = async (natsUrl: string, url: string, user: string, id: string) => {
  await Effect.gen(function* () {
    const token = tokenOf(user)
    const list = yield* (yield* Buckets).get("subscriptions", keys.subscriptions(token))
    const generation = list!.value.subscriptions[id]!.seq
    const by = { broadcast: 1, status: 410, cause: "gone", at: Date.now() } as const
    yield* (yield* EventLog).append("log", {
      subject: subjects.subscription(token),
      type: "subscription.gone",
      body: { id, generation, ...by }
    })
  }).pipe(Effect.provide(natsLayer({ url: natsUrl, name: "test" })), Effect.runPromise)
  await until(
    () => call(url, "GET", `/subscriptions/${id}`, user),
    ({ status }) => status === 404
  )
}
