// GET of a broadcast, below its channel or by its id alone: its progress, for publishers. Always:
// accepted = delivered + waiting + retrying + expired + dead + gone + cancelled.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { publisherOf, readHeaders } from "#domain/broadcast.ts"
import { BroadcastState } from "#domain/broadcast-state.ts"
import { type Progress, startProgress, waiting } from "#domain/outcome.ts"
import type { Caller } from "#identity/identity.ts"
import { type Origin, originOf, type Standing, standingOf } from "#nats/kv/broadcast-state.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { wholeBroadcast } from "#nats/stream/whole-broadcast.ts"
import { channelToken, decodeToken } from "#streams/tokens.ts"
import { channelIdOf } from "../channels/id.ts"
import { maySend } from "../channels/publishers.ts"
import { refuse } from "../http/errors.ts"
import { stamp } from "../http/preconditions.ts"
import { type Call, ok } from "../http/request.ts"
import { noStore } from "../http/response-headers.ts"
import type { Operation } from "../operation.ts"

const BroadcastObject = Schema.Struct({
  id: Schema.String,
  state: BroadcastState,
  accepted: Schema.Int,
  delivered: Schema.Int,
  waiting: Schema.Int,
  retrying: Schema.Int,
  expired: Schema.Int,
  dead: Schema.Int,
  gone: Schema.Int,
  cancelled: Schema.Int,
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

/** The body of a response that shows a broadcast. */
export const Shown = Schema.Struct({ data: BroadcastObject })

const viewOf = (progress: Progress, state: BroadcastState): View => ({
  id: String(progress.broadcast),
  state,
  accepted: progress.accepted,
  delivered: progress.delivered,
  waiting: waiting(progress),
  retrying: progress.retrying,
  expired: progress.expired,
  dead: progress.dead,
  gone: progress.gone,
  cancelled: progress.cancelled ?? 0,
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

/** The counts of a broadcast that is not planned yet, or rejected. */
const unplanned = ({ stored }: Origin): Progress => {
  const { headers } = readHeaders((name) => stored.header(name))
  const plan = {
    broadcast: stored.seq,
    depth: 0,
    shards: 0,
    floor: { subscriptions: 0, registrations: 0 },
    acceptedAt: stored.at,
    expiresAt: stored.at + headers.ttlSeconds * 1000,
    at: stored.at
  }
  return { ...startProgress(plan, 0), finished: false }
}

/** The response that shows a broadcast. */
export const shown = (origin: Origin, { change, progress, rejected, state }: Standing) => {
  const view = viewOf(progress ?? unplanned(origin), state)
  const last_modified = Math.max(view.last_modified, change?.at ?? 0)
  const data = { ...view, last_modified, ...(rejected === undefined ? {} : { rejected }) }
  return ok({ data }, { ...stamp(last_modified), ...noStore })
}

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

/** The broadcast with an id, if `isShown` is true of it; else it is as if there were none. */
const find = Effect.fnUntraced(function* <E, R>(
  id: string,
  isShown: (origin: Origin) => Effect.Effect<boolean, E, R>
) {
  const origin = /^[1-9]\d{0,14}$/.test(id) ? yield* originOf(Number(id)) : undefined
  if (origin === undefined || !(yield* isShown(origin)))
    return yield* refuse("unknownObject", { details: { id, resource_name: "broadcast" } })
  return origin
})

/** The broadcast in the path, for a caller who may see and change it. */
export const findOwn = ({ caller, params }: Call) =>
  find(params["broadcast"] ?? "", (origin) => maySee(caller!, origin))

const doc = {
  summary: "What became of a broadcast so far",
  responses: { 200: Shown }
}

export const broadcastGet: Operation<void> = {
  access: "publisher",
  exposes: ["Last-Modified", "ETag"],
  run: Effect.fnUntraced(function* (_, { params }) {
    const channel = channelToken(yield* channelIdOf(params))
    const origin = yield* find(params["broadcast"] ?? "", (found) =>
      Effect.succeed(found.channel === channel)
    )
    return shown(origin, yield* standingOf(origin))
  }),
  doc: { ...doc, errors: [400, 403, 404] }
}

/** The response about a broadcast that the caller may not see is that about a missing one. */
export const anyBroadcastGet: Operation<void> = {
  access: "principal",
  exposes: ["Last-Modified", "ETag"],
  run: Effect.fnUntraced(function* (_, call) {
    const origin = yield* findOwn(call)
    return shown(origin, yield* standingOf(origin))
  }),
  doc: { ...doc, summary: `${doc.summary}, by its id alone`, errors: [404] }
}
