// GET /users/{user}: the devices, the channels and the last pushes of a user, for operators. The
// audit of the user says who looked.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type ForUser, listForUser } from "#broadcasts/pushes.ts"
import { pushServiceAt, pushServiceNames } from "#domain/subscription/endpoint.ts"
import type { StoredSubscription } from "#domain/subscription/subscription.ts"
import type { User } from "#identity/identity.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { decodeToken, decodeTokens, isDirect, type UserToken } from "#streams/tokens.ts"
import { channelsAt, registrationsAtOnce, registrationsSince } from "#subscriptions/audience.ts"
import { inTurn } from "../broadcasts/broadcast-list.ts"
import { PushObject, pushView } from "../broadcasts/pushes.ts"
import { ok } from "../http/response.ts"
import { noStore } from "../http/response-headers.ts"
import { recordLook, userInPath } from "../named-user.ts"
import { operation } from "../operation.ts"
import { listOf } from "../write.ts"

/** Most channels that are named, each of which is read from LOG: a user may have 10,000. */
const channelsMax = 500

/** Broadcasts with a push to the user that are shown, and such that could have one of a look. */
const broadcastsMax = 20
/** Looks at the newest broadcasts: each reads 200, or finds 20 that could have a push. */
const looksMax = 5

/** A subscription as operators see it: never its endpoint or its keys. */
export const Device = Schema.Struct({
  /** The id of the subscription. */
  id: Schema.String,
  /** The host of the push service. */
  host: Schema.String,
  push_service: Schema.Literals(pushServiceNames),
  label: Schema.optionalKey(Schema.String),
  locale: Schema.optionalKey(Schema.String),
  /** When its user stored it with these keys first; absent: LOG does not have that. */
  created: Schema.optionalKey(Schema.Int),
  last_modified: Schema.Int,
  /** When a push service took the last of the pushes that are shown beside it. */
  last_delivered: Schema.optionalKey(Schema.Int),
  /** Nothing is sent to it, since when and why. */
  suspended: Schema.optionalKey(Schema.Struct({ reason: Schema.String, at: Schema.Int }))
}).annotate({ identifier: "Device" })

const Person = Schema.Struct({
  id: Schema.String,
  /** The newest first. */
  devices: Schema.Array(Device),
  /** The number of all channels, and the first of them. */
  registrations: Schema.Int,
  channels: Schema.Array(Schema.Struct({ id: Schema.String })),
  /** Pushes of the last broadcasts to the user, the newest first. */
  pushes: Schema.Array(
    Schema.Struct({
      broadcast: Schema.String,
      /** Absent: it went to several, or to users. */
      channel: Schema.optionalKey(Schema.String),
      ...PushObject.fields
    })
  )
}).annotate({ identifier: "Person" })

export const userGet = operation({
  access: "operator",
  run: Effect.fnUntraced(function* (_, call) {
    const user = yield* userInPath(call)
    yield* recordLook(call, user.user)
    const { person } = yield* personOf(user, call.caller!.user)
    return ok({ data: person }, noStore)
  }),
  doc: {
    summary: "The devices, the channels and the last pushes of a user",
    responses: { 200: Schema.Struct({ data: Person }) }
  }
})

/**
 * Devices, registrations, channels and last pushes of a user. `by`: who looks; "": a command.
 * `isMore`: there may be pushes of earlier broadcasts.
 */
export const personOf = Effect.fnUntraced(function* ({ id, user }: User, by = "") {
  const { subscriptions } = yield* listOf(user)
  const stored = Object.entries(subscriptions).sort(
    ([, a], [, b]) => b.lastModified - a.lastModified
  )
  const { isMore, reached } = yield* lastOf(user, by)
  const devices = yield* Effect.forEach(
    stored,
    ([subscription, each]) =>
      Effect.map(deviceOf(subscription, each), (device) => ({
        ...device,
        ...deliveredTo(subscription, reached)
      })),
    { concurrency: registrationsAtOnce }
  )
  const began = yield* registrationsSince(user)
  const tokens = yield* channelsAt(began.slice(0, channelsMax))
  const channels = decodeTokens(tokens).map((channel) => ({ id: channel }))
  const pushes = reached.flatMap(pushesIn)
  const person: typeof Person.Type = {
    id,
    devices,
    registrations: began.length,
    channels,
    pushes
  }
  return { isMore, person }
})

/** The last broadcasts with a push to a user. */
const lastOf = Effect.fnUntraced(function* (user: UserToken, by: string) {
  const reached: Array<ForUser> = []
  let behind: number | undefined
  let isCut = false
  for (let looks = 0; looks < looksMax; looks++) {
    // Many broadcasts to other users must not hide an older one to a channel of this user.
    const isLast = looks === looksMax - 1
    const bounds = { limit: broadcastsMax, behind, since: undefined, before: undefined }
    const list = listForUser(user, { ...bounds, channel: undefined, isLast })
    const { next, rows } = yield* inTurn(by, list)
    reached.push(...rows.filter(({ pushes }) => pushes.length > 0))
    behind = next
    isCut = isLast
    if (behind === undefined || reached.length >= broadcastsMax) break
  }
  const isMore = isCut || behind !== undefined || reached.length > broadcastsMax
  return { isMore, reached: reached.slice(0, broadcastsMax) }
})

const pushesIn = ({ origin, pushes }: ForUser): typeof Person.Type.pushes => {
  const channel = decodeToken(origin.channel)
  const of = {
    broadcast: String(origin.stored.seq),
    ...(!isDirect(origin.channel) && channel !== undefined && { channel })
  }
  return pushes.map((push) => ({ ...of, ...pushView(push) }))
}

const deliveredTo = (id: string, reached: ReadonlyArray<ForUser>) => {
  const times = reached.flatMap(({ pushes }) =>
    pushes.flatMap(({ at, fate, subscription }) =>
      subscription === id && fate === "delivered" ? [at] : []
    )
  )
  return times.length === 0 ? {} : { last_delivered: Math.max(...times) }
}

export const deviceOf = Effect.fnUntraced(function* (id: string, stored: StoredSubscription) {
  const { data, lastModified, seq, suspended } = stored
  const host = URL.parse(data.endpoint)?.hostname ?? ""
  const began = yield* (yield* EventLog).at("log", seq)
  const device: typeof Device.Type = {
    id,
    host,
    push_service: pushServiceAt(host),
    ...textIn("label", data["label"]),
    ...textIn("locale", data["locale"]),
    ...(began !== undefined && { created: began.at }),
    last_modified: lastModified,
    ...(suspended !== undefined && { suspended: { reason: suspended.cause, at: suspended.at } })
  }
  return device
})

/** Clients of NATS may have stored anything. */
const textIn = (name: string, value: unknown) =>
  typeof value === "string" ? { [name]: value } : {}
