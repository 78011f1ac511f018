// GET /users/{user}: the devices and the channels of a user, for operators. The log says who
// looked.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { User } from "#identity/identity.ts"
import { channelAt, registrationsAtOnce, registrationsSince } from "#nats/kv/registered.ts"
import { decodeToken } from "#streams/tokens.ts"
import { listOf } from "../changes.ts"
import { ok } from "../http/request.ts"
import { noStore } from "../http/response-headers.ts"
import { userInPath } from "../named-user.ts"
import type { Operation } from "../operation.ts"
import { about } from "../operators.ts"
import { Device, deviceOf } from "./device.ts"

/** Most channels that are named, each of which is read from LOG: a user may have 10,000. */
const channelsMax = 500

const Person = Schema.Struct({
  id: Schema.String,
  /** The newest first. */
  devices: Schema.Array(Device),
  /** The number of all channels, and the first of them. */
  registrations: Schema.Int,
  channels: Schema.Array(Schema.Struct({ id: Schema.String }))
})

const shown = Effect.fnUntraced(function* ({ id, user }: User) {
  const { subscriptions } = yield* listOf(user)
  const stored = Object.entries(subscriptions).sort(
    ([, a], [, b]) => b.lastModified - a.lastModified
  )
  const options = { concurrency: registrationsAtOnce }
  const devices = yield* Effect.forEach(stored, (each) => deviceOf(...each), options)
  const began = yield* registrationsSince(user)
  const tokens = yield* Effect.forEach(began.slice(0, channelsMax), channelAt, options)
  const channels = tokens.flatMap((token) => {
    const channel = token && decodeToken(token)
    return channel === undefined ? [] : [{ id: channel }]
  })
  const data: typeof Person.Type = { id, devices, registrations: began.length, channels }
  return ok({ data }, noStore)
})

export const userGet: Operation<void> = {
  access: "operator",
  run: (_, call) => Effect.flatMap(userInPath(call), (user) => about(user.user, shown(user))),
  doc: {
    summary: "The devices and the channels of a user",
    responses: { 200: Schema.Struct({ data: Person }) }
  }
}
