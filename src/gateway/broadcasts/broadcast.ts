// GET and PATCH of a broadcast, below its channel or by its id alone: its state and counts, for
// publishers and operators, and the change of its state, its start, its rate and its payload.
import { randomUUID } from "node:crypto"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import {
  changeState,
  type Expected,
  type Origin,
  originOf,
  reschedule,
  type Standing,
  standingOf
} from "#broadcasts/state.ts"
import { isSubscriptionTest } from "#broadcasts/whole-broadcast.ts"
import { broadcastIdIn, fitsOnePush } from "#domain/broadcast.ts"
import { WantedState } from "#domain/broadcast-state.ts"
import type { Caller } from "#identity/identity.ts"
import { channelToken, isDirect } from "#streams/tokens.ts"
import { readPreconditions, unmet } from "../http/preconditions.ts"
import { type Call, readBody } from "../http/request.ts"
import { checked, errorIn, refuse } from "../http/response.ts"
import { operation } from "../operation.ts"
import { demandRoom } from "../quotas.ts"
import { channelIdOf } from "../rights.ts"
import { dataOf, mayPublishNow, type Seen, shown, sightOf } from "./content.ts"
import { bodiesMax, isTooLargeWritten, publishFields, withOptions } from "./publish.ts"
import { countBytes, directOf } from "./store.ts"
import { lastModifiedOf, Shown } from "./view.ts"

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

const show = Effect.fnUntraced(function* (_: unknown, call: Call) {
  const seen = yield* findSeen(call)
  return yield* shown(call, seen, yield* standingOf(seen.origin))
})

export const broadcastGet = operation({
  access: "viewer",
  exposes: ["Last-Modified", "ETag"],
  run: show,
  doc: { ...doc, errors: [400, 403, 404] }
})

/** The response about a broadcast that the caller may not see is that about a missing one. */
export const anyBroadcastGet = operation({
  access: "principal",
  exposes: ["Last-Modified", "ETag"],
  run: show,
  doc: { ...doc, summary: `${doc.summary}, by its id alone`, errors: [404] }
})

export const broadcastPatch = operation({
  access: "principal",
  takesJson: "always",
  exposes: ["Last-Modified", "ETag"],
  read: Effect.fnUntraced(function* ({ request }, errors) {
    const preconditions = readPreconditions(request, errors)
    const { value } = yield* decodeBody(request, errors, { times: bodiesMax })
    if (value === undefined) return undefined
    const { state } = value.data
    const members = Object.keys(value.data).length
    if (members === 0) errors.push(errorIn("body", "data.state", "Required"))
    if (state !== undefined && members > 1)
      errors.push(errorIn("body", "data.state", "Change the state alone"))
    yield* withOptions({ headers: {}, key: undefined }, value.data, errors, "data.")
    return { wanted: value.data, preconditions }
  }),
  run: Effect.fn("Gateway.changeBroadcast")(function* (request, call) {
    const { preconditions, wanted } = request!
    const seen = yield* findSeen(call)
    const isExpected: Expected = (standing) =>
      unmet(preconditions, targetOf(seen, standing), "write") === undefined
    const { isDone, standing } = yield* change(seen, wanted, isExpected, call).pipe(
      Effect.catchTag("AppendConflict", () => refuse("too-many-writes"))
    )
    if (standing.isChanged !== true && !isExpected(standing)) {
      const existing = yield* dataOf(call, seen, standing)
      yield* checked(unmet(preconditions, { ...targetOf(seen, standing), existing }, "write"))
    }
    const { state } = standing
    return isDone
      ? yield* shown(call, seen, standing)
      : yield* refuse("impossible-state", { details: { state } })
  }),
  doc: {
    summary: "Pause, resume or cancel a broadcast, or change one that has not started",
    parameters: ["preconditions"],
    body: Body,
    bodyExample: { data: { state: "paused" } },
    bodyRequired: true,
    responses: { 200: Shown },
    errors: [403, 404, 409, 412, 413, 429, 507]
  }
})

/** The broadcast in the path, below its channel or not, for a caller who may see and change it. */
export const findOwn = (call: Call) => Effect.map(findSeen(call), ({ origin }) => origin)

/** The same, with what the caller sees of it. Else it is as if there were no such broadcast. */
const findSeen = Effect.fnUntraced(function* ({ caller, params }: Call) {
  const { broadcast: id = "", channel } = params
  const place = channel === undefined ? undefined : channelToken(yield* channelIdOf(params))
  const seq = broadcastIdIn(id)
  const origin = seq === undefined ? undefined : yield* originOf(seq)
  const isThere = origin !== undefined && (place === undefined || origin.channel === place)
  const sight = isThere ? yield* sightOf(caller!, origin) : undefined
  if (!isThere || sight === undefined)
    return yield* refuse("unknown-object", { details: { id, resource_name: "broadcast" } })
  return { origin, sight } satisfies Seen
})

const targetOf = ({ origin }: Seen, standing: Standing) => ({
  timestamp: lastModifiedOf(origin, standing),
  exists: true
})

/** `isChanged`: by this request. */
interface Changed {
  readonly standing: Standing & { readonly isChanged?: boolean }
  readonly isDone: boolean
}

const change = Effect.fnUntraced(function* (
  { origin, sight }: Seen,
  wanted: Wanted,
  isExpected: Expected,
  { caller }: Call
) {
  const { data, data_by_locale, state } = wanted
  if (state !== undefined) {
    // LOG keeps each change for ever: by changes of tests any user could fill it.
    const standing: Changed["standing"] = isSubscriptionTest(origin.stored)
      ? yield* standingOf(origin)
      : yield* changeTo(origin, state, isExpected, caller!)
    // Another request may have changed the broadcast after this one did.
    return { standing, isDone: standing.isChanged === true || standing.state === state }
  }
  const saysOther = data !== undefined || data_by_locale !== undefined
  // A letter that a caller may not read must not become another one by that caller's hand.
  const mayRewrite = sight !== "counts" && (yield* mayPublishNow(caller!, origin))
  if (saysOther && !mayRewrite) return yield* refuse("forbidden")
  const before: Changed["standing"] = yield* standingOf(origin)
  if (before.state !== "scheduled" || !isExpected(before))
    return { standing: before, isDone: false }
  const standing = yield* changeScheduled(origin, wanted, isExpected, caller!)
  return { standing, isDone: standing.isChanged }
})

/**
 * Changes the state of a broadcast. To stop one is never refused. So a resumption counts for both:
 * LOG keeps each change, and a publisher could pause and resume without end.
 */
const changeTo = Effect.fnUntraced(function* (
  origin: Origin,
  state: WantedState,
  isExpected: Expected,
  by: Caller
) {
  const now = yield* Clock.currentTimeMillis
  const change = changeState(origin, state, by.id, now, isExpected)
  if (state !== "running") return yield* change
  const before = yield* standingOf(origin)
  if (before.state !== "paused" || !isExpected(before)) return yield* change
  yield* demandRoom("broadcast")
  const counted = yield* countBytes(by, { state })
  return yield* counted(change, ({ isChanged }) => isChanged)
})

/** Changes a broadcast that has not started. */
const changeScheduled = Effect.fnUntraced(function* (
  origin: Origin,
  wanted: Wanted,
  isExpected: Expected,
  by: Caller
) {
  const { at: startAt, rate } = wanted
  const body = yield* payloadOf(origin, wanted)
  yield* demandRoom("broadcast")
  const counted = yield* countBytes(by, wanted)
  const to = { channels: [], users: [], except: [] }
  const payload = body === undefined ? {} : yield* directOf({ body, to }, randomUUID())
  const now = yield* Clock.currentTimeMillis
  const change = reschedule(origin, { startAt, rate, payload }, by.id, now, isExpected)
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
  if (!isDirect(channel) && isTooLargeWritten(body)) return yield* refuse("body-too-large")
  return body
})
