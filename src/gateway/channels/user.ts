// DELETE /: removes all that is stored of the caller as a reader, in every channel and browser.

import * as Effect from "effect/Effect"
import { nextTimestamp } from "#domain/subscription/subscription.ts"
import { renewables } from "#domain/subscription/tombstone.ts"
import { registeredChannels, registrationsAtOnce } from "#nats/kv/registered.ts"
import { changeList } from "../changes.ts"
import { changed, unchanged } from "../decision.ts"
import type { Call } from "../http/request.ts"
import { operation } from "../operation.ts"
import { Acknowledgement, accepted, endRegistration } from "./registration.ts"

const removeSubscriptions = (call: Call) =>
  changeList(call, (list, now) => {
    const first = nextTimestamp(list, now)
    const stored = Object.keys(list.subscriptions)
    const removed = [
      ...stored.map((id, i) => ({ id, lastModified: first + i })),
      ...renewables(list.tombstones)
    ]
    const { id: user } = call.user!
    return Effect.succeed(
      removed.length === 0
        ? unchanged(accepted)
        : changed({ type: "subscription.delete/1", user, removed }, accepted)
    )
  })

/** Subscriptions go first: nothing is sent from then on. A repeat completes what an error left. */
export const userDelete = operation({
  access: "caller",
  run: Effect.fnUntraced(function* (_, call) {
    yield* removeSubscriptions(call)
    const channels = yield* registeredChannels(call.user!.user)
    yield* Effect.forEach(channels, (channel) => endRegistration(channel, call), {
      concurrency: registrationsAtOnce,
      discard: true
    })
    return accepted
  }),
  doc: {
    summary: "Forget the caller: remove their subscriptions, and them from all channels",
    responses: { 202: Acknowledgement },
    errors: [409, 507]
  }
})
