// PATCH of a broadcast: changes its state, its start and its rate, for those who may see it by its
// id alone; and what it says, for those who may publish it now.
import { randomUUID } from "node:crypto"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { fitsOnePush } from "#domain/broadcast.ts"
import { WantedState } from "#domain/broadcast-state.ts"
import type { Caller } from "#identity/identity.ts"
import { changeState, type Origin, reschedule, standingOf } from "#nats/broadcasts/state.ts"
import { directToken } from "#streams/tokens.ts"
import { readBody } from "../http/body.ts"
import { type ErrorDetail, errorIn, refuse } from "../http/errors.ts"
import type { Call } from "../http/request.ts"
import { operation } from "../operation.ts"
import { demandRoom } from "../quotas/room.ts"
import { findOwn, isTest, mayPublishNow } from "./broadcast.ts"
import { bodiesMax, published } from "./publish.ts"
import { countBytes, directOf, isTooLargeWritten, withOptions } from "./store.ts"
import { Shown, shown } from "./view.ts"

const { at, data, data_by_locale, rate } = published
const Body = Schema.Struct({
  data: Schema.Struct({
    state: Schema.optionalKey(WantedState),
    ...{ at, rate, data, data_by_locale }
  })
})
type Wanted = (typeof Body.Type)["data"]
const decodeBody = readBody(Body)

const noState = errorIn("body", "data.state", "Required")
const notAlone = errorIn("body", "data.state", "Change the state alone")

const read = Effect.fnUntraced(function* ({ request }: Call, errors: Array<ErrorDetail>) {
  const { value } = yield* decodeBody(request, errors, { times: bodiesMax })
  if (value === undefined) return undefined
  const { state } = value.data
  const isAlone = Object.keys(value.data).length === 1
  if (Object.keys(value.data).length === 0) errors.push(noState)
  if (state !== undefined && !isAlone) errors.push(notAlone)
  yield* withOptions({ headers: {}, key: undefined }, value.data, errors, "data.")
  return value.data
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

const change = Effect.fnUntraced(function* (origin: Origin, wanted: Wanted, { caller }: Call) {
  const { data, data_by_locale, state } = wanted
  if (state !== undefined) {
    // LOG keeps each change for ever: by changes of tests any user could fill it.
    if (isTest(origin)) {
      const standing = yield* standingOf(origin)
      return { standing, isDone: standing.state === state }
    }
    const standing = yield* changeTo(origin, state, caller!)
    // Somebody else may have changed the broadcast after this request did.
    return { standing, isDone: standing.isChanged || standing.state === state }
  }
  const saysOther = data !== undefined || data_by_locale !== undefined
  if (saysOther && !(yield* mayPublishNow(caller!, origin))) return yield* refuse("forbidden")
  const before = yield* standingOf(origin)
  if (before.state !== "scheduled") return { standing: before, isDone: false }
  const standing = yield* changeScheduled(origin, wanted, caller!)
  return { standing, isDone: standing.isChanged }
})

export const broadcastPatch = operation({
  access: "principal",
  takesJson: "always",
  exposes: ["Last-Modified", "ETag"],
  read,
  run: Effect.fnUntraced(function* (wanted, call) {
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
