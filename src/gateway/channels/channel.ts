// GET /channels/{id}: the number of registrations and of pushes, for registered users and
// publishers.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { pushesSince } from "#domain/outcome.ts"
import { emptyChannel } from "#domain/registration.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { keys } from "#streams/buckets.ts"
import { type ChannelToken, channelToken } from "#streams/tokens.ts"
import { refuse } from "../http/errors.ts"
import { stamp } from "../http/preconditions.ts"
import { ok } from "../http/request.ts"
import { noStore } from "../http/response-headers.ts"
import { operation } from "../operation.ts"
import { channelIdOf, mayPublish } from "../rights.ts"

/** The counts of a channel, none of one that nobody is registered to. */
export const channelCounts = Effect.fnUntraced(function* (channel: ChannelToken) {
  const buckets = yield* Buckets
  const [registrations, pushes] = yield* Effect.all(
    [
      buckets.get("channels", keys.channelRegistrations(channel)),
      buckets.get("channels", keys.channelPushes(channel))
    ],
    { concurrency: 2 }
  )
  const counted = registrations?.value ?? emptyChannel
  const sent = pushesSince(pushes?.value, counted.since)
  // A channel is forgotten when its last user leaves, its pushes a moment after its count.
  const push = counted.registrations === 0 ? 0 : sent.pushes
  const lastModified = Math.max(counted.lastModified, sent.lastModified)
  return { registrations: counted.registrations, push, lastModified }
})

const Channel = Schema.Struct({
  id: Schema.String,
  registrations: Schema.Int,
  push: Schema.Int
}).annotate({ identifier: "Channel" })

export const channelGet = operation({
  access: "principal",
  exposes: ["Last-Modified", "ETag"],
  run: Effect.fnUntraced(function* (_, { caller, params }) {
    const id = yield* channelIdOf(params)
    const channel = channelToken(id)
    const entry = (yield* Buckets).get("registrations", keys.registration(channel, caller!.user))
    const [own, counts] = yield* Effect.all([entry, channelCounts(channel)], { concurrency: 2 })
    if (!own?.value.on && !(yield* mayPublish(caller!, id))) return yield* refuse("forbidden")
    const { lastModified, push, registrations } = counts
    const data = { id, registrations, push }
    return ok({ data }, { ...stamp(lastModified), ...noStore })
  }),
  doc: {
    summary: "Counts of a channel that the caller is registered to, or may publish on",
    responses: { 200: Schema.Struct({ data: Channel }) },
    errors: [400, 403]
  }
})
