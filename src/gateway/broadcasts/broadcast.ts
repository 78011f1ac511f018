// GET and PATCH of a broadcast, below its channel or by its id alone: its state and counts, for
// publishers and operators, and the change of its state, its start, its rate and its payload.
import { randomUUID } from "node:crypto"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { changeState, type Origin, originOf, reschedule, standingOf } from "#broadcasts/state.ts"
import { readRecipients } from "#broadcasts/whole-broadcast.ts"
import { broadcastIdIn, fitsOnePush, publisherOf } from "#domain/broadcast.ts"
import { WantedState } from "#domain/broadcast-state.ts"
import type { Recipients } from "#domain/recipients.ts"
import type { Caller } from "#identity/identity.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { channelToken, decodeToken, decodeTokens, directToken } from "#streams/tokens.ts"
import { type Call, readBody } from "../http/request.ts"
import { errorIn, refuse } from "../http/response.ts"
import { operation } from "../operation.ts"
import { demandRoom } from "../quotas.ts"
import { channelIdOf, isOperator, maySend } from "../rights.ts"
import { bodiesMax, isTooLargeWritten, publishFields, withOptions } from "./publish.ts"
import { countBytes, directOf } from "./store.ts"
import { Shown, shown } from "./view.ts"

const { at, data, data_by_locale, rate } = publishFields
const Body = Schema.Struct({
  data: Schema.Struct({
    state: Schema.optionalKey(WantedState),
    ...{ at, rate, data, data_by_locale }
  })
})
type Wanted = (typeof Body.Type)["data"]
const decodeBody = readBody(Body)

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

export const broadcastPatch = operation({
  access: "principal",
  takesJson: "always",
  exposes: ["Last-Modified", "ETag"],
  read: Effect.fnUntraced(function* ({ request }, errors) {
    const { value } = yield* decodeBody(request, errors, { times: bodiesMax })
    if (value === undefined) return undefined
    const { state } = value.data
    const members = Object.keys(value.data).length
    if (members === 0) errors.push(errorIn("body", "data.state", "Required"))
    if (state !== undefined && members > 1)
      errors.push(errorIn("body", "data.state", "Change the state alone"))
    yield* withOptions({ headers: {}, key: undefined }, value.data, errors, "data.")
    return value.data
  }),
  run: Effect.fn("Gateway.changeBroadcast")(function* (wanted, call) {
    const origin = yield* findOwn(call)
    const { isDone, standing } = yield* change(origin, wanted!, call).pipe(
      Effect.catchTag("AppendConflict", () => refuse("too-many-writes"))
    )
    const { state } = standing
    return isDone
      ? yield* shown(origin, standing)
      : yield* refuse("impossible-state", { details: { state } })
  }),
  doc: {
    summary: "Pause, resume or cancel a broadcast, or change one that has not started",
    body: Body,
    bodyExample: { data: { state: "paused" } },
    bodyRequired: true,
    responses: { 200: Shown },
    errors: [403, 404, 409, 413, 429, 507]
  }
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

/** Whether a caller published a broadcast, is an operator, or may publish it now. */
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

/**
 * Whether a caller may send to all whom a broadcast names. `may`: `maySend`, or a function that
 * remembers what that said.
 */
const mayPublishNow = Effect.fnUntraced(function* (
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

/** Tests of subscriptions (3.11) are published by any user. */
export const isTest = ({ stored: { message } }: Origin): boolean =>
  message.type === "direct/1" && message.subscription !== undefined

const change = Effect.fnUntraced(function* (origin: Origin, wanted: Wanted, { caller }: Call) {
  const { data, data_by_locale, state } = wanted
  if (state !== undefined) {
    // LOG keeps each change for ever: by changes of tests any user could fill it.
    if (isTest(origin)) {
      const standing = yield* standingOf(origin)
      return { standing, isDone: standing.state === state }
    }
    const standing = yield* changeTo(origin, state, caller!)
    // Another request may have changed the broadcast after this one did.
    return { standing, isDone: standing.isChanged || standing.state === state }
  }
  const saysOther = data !== undefined || data_by_locale !== undefined
  if (saysOther && !(yield* mayPublishNow(caller!, origin))) return yield* refuse("forbidden")
  const before = yield* standingOf(origin)
  if (before.state !== "scheduled") return { standing: before, isDone: false }
  const standing = yield* changeScheduled(origin, wanted, caller!)
  return { standing, isDone: standing.isChanged }
})

/**
 * Changes the state of a broadcast. To stop one is never refused. So a resumption counts for both:
 * LOG keeps each change, and a publisher could pause and resume without end.
 */
const changeTo = Effect.fnUntraced(function* (origin: Origin, state: WantedState, by: Caller) {
  const change = changeState(origin, state, by.id, yield* Clock.currentTimeMillis)
  const isResumption = state === "running" && (yield* standingOf(origin)).state === "paused"
  if (!isResumption) return yield* change
  yield* demandRoom("broadcast")
  const counted = yield* countBytes(by, { state })
  return yield* counted(change, ({ isChanged }) => isChanged)
})

/** Changes a broadcast that has not started. */
const changeScheduled = Effect.fnUntraced(function* (origin: Origin, wanted: Wanted, by: Caller) {
  const { at: startAt, rate } = wanted
  const body = yield* payloadOf(origin, wanted)
  yield* demandRoom("broadcast")
  const counted = yield* countBytes(by, wanted)
  const to = { channels: [], users: [], except: [] }
  const payload = body === undefined ? {} : yield* directOf({ body, to }, randomUUID())
  const now = yield* Clock.currentTimeMillis
  const change = reschedule(origin, { startAt, rate, payload }, by.id, now)
  // Parts stay counted: they are stored.
  return yield* "parts" in payload ? change : counted(change, ({ isChanged }) => isChanged)
})

/** The payload of a change; undefined: it leaves the payload. */
const payloadOf = Effect.fnUntraced(function* (
  { channel }: Origin,
  { data, data_by_locale }: Wanted
) {
  if (data === undefined && data_by_locale === undefined) return undefined
  const body = { data: data ?? {}, data_by_locale: data_by_locale ?? {} }
  if (!fitsOnePush(body)) return yield* refuse("payload-too-large")
  if (channel !== directToken && isTooLargeWritten(body)) return yield* refuse("body-too-large")
  return body
})
