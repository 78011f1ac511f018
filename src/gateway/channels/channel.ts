// GET /channels/{id}: the counts of a channel. Below it, for the servers of sites: GET .../members
// lists the registered users, PUT and DELETE .../members/{user} registers one, or ends that.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { pushesSince } from "#domain/outcome.ts"
import { emptyChannel, type Registration } from "#domain/registration.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import type { Entry } from "#nats/kv/values.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { type EntryKey, keys } from "#streams/buckets.ts"
import { type ChannelToken, channelToken, shardsAt } from "#streams/tokens.ts"
import { registrationsUnder } from "#subscriptions/audience.ts"
import { stamp } from "../http/preconditions.ts"
import { ok, refuse } from "../http/response.ts"
import { noStore } from "../http/response-headers.ts"
import { limitOf, nextPage } from "../listing/page.ts"
import { type ListInput, readPages } from "../listing/query.ts"
import { forUserInPath } from "../named-user.ts"
import { operation } from "../operation.ts"
import { channelIdOf, mayPublish } from "../rights.ts"
import { register, registrationDelete } from "./registration.ts"

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

export const memberPut = forUserInPath(
  { access: "users", ...register },
  "Register a user to a channel, also to one that is closed to them"
)

export const memberDelete = forUserInPath(registrationDelete, "Remove a user from a channel")

/** Most members of a page. Each is read from LOG, which alone has the ids of users. */
const membersMax = 250
const readsAtOnce = 16
/** Most registrations that one request reads from the bucket, on average. */
const shardMax = 256

const Members = Schema.Struct({ data: Schema.Array(Schema.Struct({ id: Schema.String })) })

export const membersGet = operation({
  access: "users",
  exposes: ["Next-Page", "Total-Records"],
  read: readPages,
  run: Effect.fnUntraced(function* ({ listing }: ListInput, call) {
    const id = yield* channelIdOf(call.params)
    const channel = channelToken(id)
    const limit = yield* limitOf(listing, membersMax)
    const entry = yield* (yield* Buckets).get("channels", keys.channelRegistrations(channel))
    const { registrations } = entry?.value ?? emptyChannel
    const behind = `${channel}.${listing.token?.last_object["key"] ?? ""}`
    const found = yield* membersBehind(shardsOf(channel, registrations), behind, limit)
    const shown = found.slice(0, limit)
    const data = yield* Effect.forEach(shown, idOf, { concurrency: readsAtOnce })
    const last = found.length > limit ? shown.at(-1) : undefined
    const next = yield* nextPage(call, {
      path: `/channels/${encodeURIComponent(id)}/members`,
      place: last && { key: last.key.slice(channel.length + 1) },
      limit
    })
    const headers = { "Total-Records": String(registrations), ...noStore, ...next }
    return ok({ data: data.flat() }, headers)
  }),
  doc: {
    summary: "List the users who are registered to a channel",
    parameters: ["pages"],
    responses: { 200: Members },
    errors: [400, 403, 413]
  }
})

/** The shards of a channel with so many registrations, in the order of the keys in them. */
const shardsOf = (channel: ChannelToken, registrations: number) => {
  const depth = Math.ceil(Math.log(Math.max(1, registrations / shardMax)) / Math.log(16))
  return shardsAt(Math.min(4, depth)).map((shard) => keys.registrationsOf(channel, shard))
}

/** The registered users behind a key, in the order of the keys: at most one more than `limit`. */
const membersBehind = Effect.fnUntraced(function* (
  shards: ReadonlyArray<EntryKey<"registration">>,
  behind: string,
  limit: number
) {
  const buckets = yield* Buckets
  const minRevision = yield* buckets.revision("registrations")
  const found: Array<Entry<Registration>> = []
  for (const shard of shards) {
    if (found.length > limit) break
    // Compares `channel.0.1.` with a key behind which the page begins.
    const prefix = shard.slice(0, -1)
    if (prefix < behind && !behind.startsWith(prefix)) continue
    const entries = yield* registrationsUnder(buckets, [shard], minRevision)
    const rest = entries.filter(({ key, value: { on } }) => on && key > behind)
    found.push(...rest.sort((a, b) => (a.key < b.key ? -1 : 1)))
  }
  return found.slice(0, limit + 1)
})

/** The full id of a registered user: buckets and subjects have the pseudonym only. */
const idOf = Effect.fnUntraced(function* ({ value: { since } }: Entry<Registration>) {
  const message = (yield* (yield* EventLog).at("log", since))?.message
  return message?.type === "registration.put" ? [{ id: message.user }] : []
})
