// POST /channels/{id}: accepts a broadcast. The response is 202 when JetStream has stored the
// message; other stages do the rest.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { pushExample } from "#browser/push.ts"
import { channelToken } from "#streams/tokens.ts"
import { channelIdOf } from "../../channels/id.ts"
import { readBody } from "../../http/body.ts"
import type { ErrorDetail } from "../../http/errors.ts"
import type { Call } from "../../http/request.ts"
import type { Operation } from "../../operation.ts"
import { Accepted, acceptedAt, channelWarnings, published } from "./accepted.ts"
import { dryRun, Reach } from "./dry-run.ts"
import { type Given, publish, readGiven, withOptions } from "./publish.ts"

const Body = Schema.Struct(published)

interface Input extends Given {
  readonly body: typeof Body.Type
}

const decodeBody = readBody(Body)

const read = Effect.fnUntraced(function* ({ request }: Call, errors: Array<ErrorDetail>) {
  const given = readGiven(request, errors)
  const body = (yield* decodeBody(request, errors)).value ?? {}
  return { ...(yield* withOptions(given, body, errors)), body }
})

export const broadcastPost: Operation<Input> = {
  access: "publisher",
  takesJson: "withBody",
  exposes: ["Location"],
  read,
  run: Effect.fnUntraced(function* (
    { body: { at: _, dry_run, pause_when: __, rate: ___, ...body }, ...given },
    call
  ) {
    const id = yield* channelIdOf(call.params)
    const to = { channels: [channelToken(id)], users: [], except: [] }
    if (dry_run === true) return yield* dryRun(to, body, call)
    const [broadcast, warnings] = yield* Effect.all(
      [publish({ ...given, body, to, isPlain: true }, call.caller!), channelWarnings(to.channels)],
      { concurrency: 2 }
    )
    return acceptedAt(`/channels/${encodeURIComponent(id)}`, broadcast, body, call, warnings)
  }),
  doc: {
    summary: "Broadcast to everybody who is registered to a channel",
    parameters: ["broadcast"],
    body: Body,
    bodyExample: pushExample,
    responses: { 200: Schema.Struct({ data: Reach }), 202: Accepted },
    errors: [400, 403, 413, 415, 429, 507]
  }
}
