// POST /channels/{id}: accepts a broadcast. The response is 202 when JetStream has stored the
// message; other stages do the rest.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { BroadcastBody } from "#domain/broadcast.ts"
import { channelToken } from "#streams/tokens.ts"
import { channelIdOf } from "../channels/id.ts"
import { Acknowledgement, accepted } from "../channels/registration.ts"
import { readBody } from "../http/body.ts"
import type { ErrorDetail } from "../http/errors.ts"
import type { Call } from "../http/request.ts"
import type { Operation } from "../operation.ts"
import { dryRun, Reach } from "./dry-run.ts"
import { type Given, publish, readGiven } from "./publish.ts"

/** The fields of a body that publishes. */
export const published = {
  ...BroadcastBody.fields,
  /** Only count whom the broadcast would reach. */
  dry_run: Schema.optionalKey(Schema.Boolean)
}
const Body = Schema.Struct(published)

interface Input extends Given {
  readonly body: typeof Body.Type
}

const decodeBody = readBody(Body)

const read = Effect.fnUntraced(function* ({ request }: Call, errors: Array<ErrorDetail>) {
  const given = readGiven(request, errors)
  return { ...given, body: (yield* decodeBody(request, errors)).value ?? {} }
})

export const broadcastPost: Operation<Input> = {
  access: "publisher",
  takesJson: "withBody",
  exposes: ["Location"],
  read,
  run: Effect.fnUntraced(function* ({ body: { dry_run, ...body }, ...given }, call) {
    const id = yield* channelIdOf(call.params)
    const to = { channels: [channelToken(id)], users: [], except: [] }
    if (dry_run === true) return yield* dryRun(to, body)
    const broadcast = yield* publish({ ...given, body, to, isPlain: true }, call.caller!)
    const path = `/channels/${encodeURIComponent(id)}/broadcasts/${broadcast}`
    return { ...accepted, broadcast, headers: { Location: call.rootUrl + path } }
  }),
  doc: {
    summary: "Broadcast to everybody who is registered to a channel",
    parameters: ["broadcast"],
    body: Body,
    bodyExample: { data: { title: "Hello", body: "from Bellcast" } },
    responses: { 200: Schema.Struct({ data: Reach }), 202: Acknowledgement },
    errors: [400, 403, 413, 415, 507]
  }
}
