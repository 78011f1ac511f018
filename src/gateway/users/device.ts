// A subscription as operators see it: never its endpoint or its keys.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { pushServiceAt, pushServiceNames } from "#domain/subscription/push-services.ts"
import type { StoredSubscription } from "#domain/subscription/subscription.ts"
import { EventLog } from "#nats/stream/event-log.ts"

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

/** Clients of NATS may have stored anything. */
const textIn = (name: string, value: unknown) =>
  typeof value === "string" ? { [name]: value } : {}

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
