// GET of a broadcast, below its channel or by its id alone: its state and progress, for publishers
// and operators.
import * as Effect from "effect/Effect"
import { broadcastIdIn } from "#domain/broadcast.ts"
import { publisherOf } from "#domain/broadcast-publisher.ts"
import type { Recipients } from "#domain/recipients.ts"
import type { Caller } from "#identity/identity.ts"
import { type Origin, originOf, standingOf } from "#nats/broadcasts/state.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { readRecipients } from "#nats/stream/whole-broadcast.ts"
import { channelToken, decodeToken, decodeTokens, directToken } from "#streams/tokens.ts"
import { refuse } from "../http/errors.ts"
import type { Call } from "../http/request.ts"
import { operation } from "../operation.ts"
import { channelIdOf, isOperator, maySend } from "../rights.ts"
import { Shown, shown } from "./view.ts"

/**
 * Whether a caller may send to all whom a broadcast names. `may`: `maySend`, or a function that
 * remembers what that said.
 */
export const mayPublishNow = Effect.fnUntraced(function* (
  caller: Caller,
  { channel, stored }: Origin,
  may: typeof maySend = maySend
) {
  // The body of a broadcast to one channel need not be read.
  if (channel !== directToken) return yield* may(caller, [decodeToken(channel) ?? ""], false)
  const mayReach = ({ channels, except, users }: Recipients) =>
    may(caller, decodeTokens(channels), users.length + except.length > 0)
  const to = yield* readRecipients(yield* EventLog, stored, mayReach)
  if (to === undefined || !(yield* mayReach(to))) return false
  // Without channels it named users, even if all of them were excepted.
  return to.channels.length > 0 || (yield* may(caller, [], true))
})

/** As `mayPublish`, or whether the caller published the broadcast itself, or is an operator. */
export const maySee = Effect.fnUntraced(function* (
  caller: Caller,
  origin: Origin,
  may: typeof maySend = maySend
) {
  const { source, stored } = origin
  // An operator sends broadcasts again, which gives no right to publish.
  if (source !== "redrive" && publisherOf(source, stored.header) === caller.id) return true
  return (yield* isOperator(caller)) || (yield* mayPublishNow(caller, origin, may))
})

/** Tests of subscriptions (3.11) are published by any user. */
export const isTest = ({ stored: { message } }: Origin): boolean =>
  message.type === "direct/1" && message.subscription !== undefined

/** The broadcast with an id, if `isShown` is true of it; else it is as if there were none. */
const find = Effect.fnUntraced(function* <E, R>(
  id: string,
  isShown: (origin: Origin) => Effect.Effect<boolean, E, R>
) {
  const seq = broadcastIdIn(id)
  const origin = seq === undefined ? undefined : yield* originOf(seq)
  if (origin === undefined || !(yield* isShown(origin)))
    return yield* refuse("unknown-object", { details: { id, resource_name: "broadcast" } })
  return origin
})

/** The broadcast in the path, below its channel or not, for a caller who may see and change it. */
export const findOwn = Effect.fnUntraced(function* ({ caller, params }: Call) {
  const isBelow = params["channel"] !== undefined
  const channel = isBelow ? channelToken(yield* channelIdOf(params)) : undefined
  return yield* find(params["broadcast"] ?? "", (origin) =>
    channel === undefined || origin.channel === channel
      ? maySee(caller!, origin)
      : Effect.succeed(false)
  )
})

const doc = {
  summary: "What became of a broadcast so far",
  responses: { 200: Shown }
}

export const broadcastGet = operation({
  access: "viewer",
  exposes: ["Last-Modified", "ETag"],
  run: Effect.fnUntraced(function* (_, { params }) {
    const channel = channelToken(yield* channelIdOf(params))
    const origin = yield* find(params["broadcast"] ?? "", (found) =>
      Effect.succeed(found.channel === channel)
    )
    return yield* shown(origin, yield* standingOf(origin))
  }),
  doc: { ...doc, errors: [400, 403, 404] }
})

/** The response about a broadcast that the caller may not see is that about a missing one. */
export const anyBroadcastGet = operation({
  access: "principal",
  exposes: ["Last-Modified", "ETag"],
  run: Effect.fnUntraced(function* (_, call) {
    const origin = yield* findOwn(call)
    return yield* shown(origin, yield* standingOf(origin))
  }),
  doc: { ...doc, summary: `${doc.summary}, by its id alone`, errors: [404] }
})
