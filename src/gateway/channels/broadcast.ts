// GET /channels/{id}/broadcasts/{broadcast}: the progress of a broadcast, for publishers. Always:
// accepted = delivered + waiting + retrying + expired + dead + gone.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { readHeaders } from "#domain/broadcast.ts"
import { type Progress, startProgress, waiting } from "#domain/outcome.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { keys } from "#streams/buckets.ts"
import { parseBroadcast, subjects } from "#streams/subjects.ts"
import { type ChannelToken, channelToken } from "#streams/tokens.ts"
import { refuse } from "../http/errors.ts"
import { stamp } from "../http/preconditions.ts"
import { ok } from "../http/request.ts"
import { noStore } from "../http/response-headers.ts"
import type { Operation } from "../operation.ts"
import { channelIdOf } from "./id.ts"

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
  expires_at: progress.expiresAt
})

/** The view of a broadcast without progress, from its message: not planned yet, or rejected. */
const unplanned = Effect.fnUntraced(function* (broadcast: number) {
  const log = yield* EventLog
  const stored = yield* log.at("log", broadcast)
  const subject = stored === undefined ? undefined : parseBroadcast(stored.subject)
  if (stored === undefined || subject === undefined) return undefined
  const rejection = (yield* log.last("log", subjects.rejected(broadcast)))?.message
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
  return { channel: subject.channel, view }
})

const find = Effect.fnUntraced(function* (channel: ChannelToken, broadcast: number) {
  const [entry, origin] = yield* Effect.all(
    [(yield* Buckets).get("broadcasts", keys.broadcast(broadcast)), unplanned(broadcast)],
    {
      concurrency: 2
    }
  )
  // Progress has no channel. The message in LOG has one, and LOG keeps broadcasts for ever.
  if (origin?.channel !== channel) return undefined
  const progress = entry?.value
  if (progress?.finished === true) return viewOf(progress)
  // The bucket is up to a second late, and drops finished broadcasts.
  const final = (yield* (yield* EventLog).last("log", subjects.finished(channel, broadcast)))
    ?.message
  if (final?.type === "broadcast.finished/1") return viewOf(final)
  return progress === undefined ? origin.view : viewOf(progress)
})

export const broadcastGet: Operation<void> = {
  access: "publisher",
  exposes: ["Last-Modified", "ETag"],
  run: Effect.fnUntraced(function* (_, { params }) {
    const channel = channelToken(yield* channelIdOf(params))
    const id = params["broadcast"] ?? ""
    const data = /^[1-9]\d{0,14}$/.test(id) ? yield* find(channel, Number(id)) : undefined
    if (data === undefined)
      return yield* refuse("unknownObject", { details: { id, resource_name: "broadcast" } })
    return ok({ data }, { ...stamp(data.last_modified), ...noStore })
  }),
  doc: {
    summary: "What became of a broadcast so far",
    responses: { 200: Schema.Struct({ data: BroadcastObject }) },
    errors: [400, 403, 404]
  }
}
