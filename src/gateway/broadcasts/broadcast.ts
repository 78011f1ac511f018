// GET of a broadcast, below its channel or by its id alone: its progress, for publishers. Always:
// accepted = delivered + waiting + retrying + expired + dead + gone.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { publisherOf, readHeaders } from "#domain/broadcast.ts"
import { type Progress, startProgress, waiting } from "#domain/outcome.ts"
import type { Caller } from "#identity/identity.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { wholeBroadcast } from "#nats/stream/whole-broadcast.ts"
import { keys } from "#streams/buckets.ts"
import { parseBroadcast, subjects } from "#streams/subjects.ts"
import { type ChannelToken, channelToken, decodeToken } from "#streams/tokens.ts"
import { channelIdOf } from "../channels/id.ts"
import { maySend } from "../channels/publishers.ts"
import { refuse } from "../http/errors.ts"
import { stamp } from "../http/preconditions.ts"
import { ok } from "../http/request.ts"
import { noStore } from "../http/response-headers.ts"
import type { Operation } from "../operation.ts"

const BroadcastObject = Schema.Struct({
  id: Schema.String,
  accepted: Schema.Int,
  delivered: Schema.Int,
  waiting: Schema.Int,
  retrying: Schema.Int,
  expired: Schema.Int,
  dead: Schema.Int,
  gone: Schema.Int,
  shards: Schema.Int,
  shards_done: Schema.Int,
  finished: Schema.Boolean,
  last_modified: Schema.Int,
  accepted_at: Schema.Int,
  expires_at: Schema.Int,
  /** Named users without a subscription; absent where none are named. */
  without_subscription: Schema.optionalKey(Schema.Int),
  /** The reason why nothing is sent. */
  rejected: Schema.optionalKey(Schema.String)
})
type View = typeof BroadcastObject.Type

const viewOf = (progress: Progress): View => ({
  id: String(progress.broadcast),
  accepted: progress.accepted,
  delivered: progress.delivered,
  waiting: waiting(progress),
  retrying: progress.retrying,
  expired: progress.expired,
  dead: progress.dead,
  gone: progress.gone,
  shards: progress.shards,
  shards_done: progress.shardsDone,
  finished: progress.finished,
  last_modified: progress.lastModified,
  accepted_at: progress.acceptedAt,
  expires_at: progress.expiresAt,
  ...(progress.withoutSubscription === undefined
    ? {}
    : { without_subscription: progress.withoutSubscription })
})

/** A broadcast as LOG has it. */
interface Origin {
  readonly stored: Stored
  readonly source: string
  /** Or `directToken`. */
  readonly channel: ChannelToken
}

const originOf = Effect.fnUntraced(function* (broadcast: number) {
  const stored = yield* (yield* EventLog).at("log", broadcast)
  const place = stored === undefined ? undefined : parseBroadcast(stored.subject)
  if (stored === undefined || place === undefined) return undefined
  return { stored, ...place } satisfies Origin
})

/** The view of a broadcast without progress, from its message: not planned yet, or rejected. */
const unplanned = Effect.fnUntraced(function* ({ stored }: Origin) {
  const broadcast = stored.seq
  const rejection = (yield* (yield* EventLog).last("log", subjects.rejected(broadcast)))?.message
  const { headers } = readHeaders((name) => stored.header(name))
  const plan = {
    broadcast,
    depth: 0,
    shards: 0,
    floor: { subscriptions: 0, registrations: 0 },
    acceptedAt: stored.at,
    expiresAt: stored.at + headers.ttlSeconds * 1000,
    at: stored.at
  }
  const view: View = {
    ...viewOf({ ...startProgress(plan, 0), finished: false }),
    ...(rejection?.type === "broadcast.rejected/1" ? { rejected: rejection.reason } : {})
  }
  return view
})

/** The bucket is up to a second late, and drops finished broadcasts. */
const progressOf = Effect.fnUntraced(function* (origin: Origin) {
  const { channel, stored } = origin
  const entry = yield* (yield* Buckets).get("broadcasts", keys.broadcast(stored.seq))
  const progress = entry?.value
  if (progress?.finished === true) return viewOf(progress)
  const log = yield* EventLog
  const final = (yield* log.last("log", subjects.finished(channel, stored.seq)))?.message
  if (final?.type === "broadcast.finished/1") return viewOf(final)
  return progress === undefined ? yield* unplanned(origin) : viewOf(progress)
})

/** Whether a caller published a broadcast, or may send to all whom it names. */
const maySee = Effect.fnUntraced(function* (caller: Caller, { source, stored }: Origin) {
  if (publisherOf(source, stored.header) === caller.id) return true
  const to = (yield* wholeBroadcast(yield* EventLog, stored))?.to
  if (to === undefined) return false
  const channels = to.channels.flatMap((token) => decodeToken(token) ?? [])
  // Without channels it named users, even if all of them were excepted.
  const namesUsers = channels.length === 0 || to.users.length + to.except.length > 0
  return yield* maySend(caller, channels, namesUsers)
})

/** The response to a caller who may see a broadcast for which `isShown` is true. */
const respond = Effect.fnUntraced(function* <E, R>(
  id: string,
  isShown: (origin: Origin) => Effect.Effect<boolean, E, R>
) {
  const origin = /^[1-9]\d{0,14}$/.test(id) ? yield* originOf(Number(id)) : undefined
  if (origin === undefined || !(yield* isShown(origin)))
    return yield* refuse("unknownObject", { details: { id, resource_name: "broadcast" } })
  const data = yield* progressOf(origin)
  return ok({ data }, { ...stamp(data.last_modified), ...noStore })
})

const doc = {
  summary: "What became of a broadcast so far",
  responses: { 200: Schema.Struct({ data: BroadcastObject }) }
}

export const broadcastGet: Operation<void> = {
  access: "publisher",
  exposes: ["Last-Modified", "ETag"],
  run: Effect.fnUntraced(function* (_, { params }) {
    const channel = channelToken(yield* channelIdOf(params))
    return yield* respond(params["broadcast"] ?? "", (origin) =>
      Effect.succeed(origin.channel === channel)
    )
  }),
  doc: { ...doc, errors: [400, 403, 404] }
}

/** The response about a broadcast that the caller may not see is that about a missing one. */
export const anyBroadcastGet: Operation<void> = {
  access: "principal",
  exposes: ["Last-Modified", "ETag"],
  run: (_, { caller, params }) =>
    respond(params["broadcast"] ?? "", (origin) => maySee(caller!, origin)),
  doc: { ...doc, summary: `${doc.summary}, by its id alone`, errors: [404] }
}
