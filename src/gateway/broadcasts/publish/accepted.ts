// The common part of requests that publish: the form of their bodies, the store of the broadcast or
// the count of a dry run, and the 202.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { PushData } from "#browser/push.ts"
import { type BroadcastBody, fitsInto, payloadFields, Rate } from "#domain/broadcast.ts"
import { PauseWhen } from "#domain/pause-when.ts"
import type { Recipients } from "#domain/recipients.ts"
import { JoinedChannels } from "#nats/broadcasts/joined.ts"
import { decodeToken } from "#streams/tokens.ts"
import { Acknowledgement, accepted } from "../../channels/registration.ts"
import { type ApiResponse, type Call, ok } from "../../http/request.ts"
import { noStore } from "../../http/response-headers.ts"
import { dryRun, Reach } from "./dry-run.ts"
import { type Broadcast, storeBroadcast } from "./publish.ts"

/** The fields of a body that publishes. */
export const published = {
  ...payloadFields(PushData),
  /** A time of RFC 3339: the broadcast starts then. */
  at: Schema.optionalKey(Schema.String),
  /** The broadcast pauses by itself when so many of its attempted pushes have failed. */
  pause_when: Schema.optionalKey(PauseWhen),
  /** Only count whom the broadcast would reach. */
  dry_run: Schema.optionalKey(Schema.Boolean),
  /** Pushes a second. */
  rate: Schema.optionalKey(Rate)
}

/**
 * Bytes of a payload that Firefox on Android takes. Mozilla's push service sends it on to Android
 * by FCM as base64 in at most 4096 bytes of JSON; senders that know this pad to 2,820.
 */
const androidBytesMax = 2_820
const androidWarning =
  `A payload of more than ${androidBytesMax} bytes: ` +
  "Mozilla's push service may refuse it for Firefox on Android"

export const Accepted = Schema.Struct({
  ...Acknowledgement.fields,
  id: Schema.String,
  /** Absent on NATS, where there is no address. */
  url: Schema.optionalKey(Schema.String),
  warnings: Schema.Array(Schema.String)
}).annotate({ identifier: "AcceptedBroadcast" })

/** The body of the response to a dry run. */
export const Counted = Schema.Struct({
  data: Reach,
  warnings: Schema.Array(Schema.String)
}).annotate({ identifier: "DryRun" })

/** The common part of the descriptions. */
export const publishDoc = {
  parameters: ["broadcast"],
  responses: { 200: Counted, 202: Accepted },
  errors: [400, 403, 413, 415, 429, 507]
}

const payloadWarnings = (body: BroadcastBody): ReadonlyArray<string> =>
  fitsInto(body, androidBytesMax) ? [] : [androidWarning]

/** Sentences about those of these channels that nobody is registered to. */
const channelWarnings = Effect.fnUntraced(function* (channels: Recipients["channels"]) {
  const empty = yield* (yield* JoinedChannels).without(channels)
  return empty.map((channel) => `Nobody is registered to the channel ${decodeToken(channel)}`)
})

/** The 202 of a broadcast that is below `path`. */
export const acceptedAt = (
  path: string,
  broadcast: number,
  body: BroadcastBody,
  { request, rootUrl }: Pick<Call, "request" | "rootUrl">,
  warnings: ReadonlyArray<string> = []
): ApiResponse => {
  const url = `${rootUrl}${path}/broadcasts/${broadcast}`
  const data: typeof Accepted.Type = {
    code: 202,
    message: "Accepted",
    id: String(broadcast),
    ...(request.source === undefined ? { url } : {}),
    warnings: [...payloadWarnings(body), ...warnings]
  }
  return { ...accepted, body: data, broadcast, headers: { Location: url } }
}

interface ToAccept extends Omit<Broadcast, "body"> {
  readonly body: Schema.Struct.Type<typeof published>
}

/** Stores a broadcast, or counts whom it would reach. `path`: that of the channel, if it is one. */
export const accept = Effect.fnUntraced(function* (
  { body: { at: _, dry_run, pause_when: __, rate: ___, ...body }, ...given }: ToAccept,
  path: string,
  call: Call
) {
  const { to } = given
  if (dry_run === true) {
    const data = yield* dryRun(to, body, call)
    const warnings = [...payloadWarnings(body), ...(yield* channelWarnings(to.channels))]
    return ok({ data, warnings } satisfies typeof Counted.Type, noStore)
  }
  const broadcast = yield* storeBroadcast({ ...given, body }, call.caller!)
  const warnings = yield* channelWarnings(to.channels)
  return acceptedAt(path, broadcast, body, call, warnings)
})
