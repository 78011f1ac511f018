// POST /channels/{id}: accepts a broadcast. The response is 202 when JetStream has stored the
// message; other stages do the rest.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { pushExample } from "#browser/push.ts"
import { channelToken } from "#streams/tokens.ts"
import { readBody } from "../../http/body.ts"
import { type ErrorDetail, refuse } from "../../http/errors.ts"
import type { Call } from "../../http/request.ts"
import { operation } from "../../operation.ts"
import { channelIdOf } from "../../rights.ts"
import { accept, publishDoc, published } from "./accepted.ts"
import { isTooLargeWritten, readGiven, withOptions } from "./publish.ts"

const ChannelBody = Schema.Struct(published)

const decodeChannelBody = readBody(ChannelBody)

const readChannelPost = Effect.fnUntraced(function* (
  { request }: Call,
  errors: Array<ErrorDetail>
) {
  const given = readGiven(request, errors)
  const body = (yield* decodeChannelBody(request, errors)).value ?? {}
  return { ...(yield* withOptions(given, body, errors)), body }
})

export const broadcastPost = operation({
  access: "publisher",
  takesJson: "withBody",
  exposes: ["Location"],
  readChannelPost,
  run: Effect.fnUntraced(function* (input, call) {
    const id = yield* channelIdOf(call.params)
    if (isTooLargeWritten(input.body)) return yield* refuse("body-too-large")
    const to = { channels: [channelToken(id)], users: [], except: [] }
    const path = `/channels/${encodeURIComponent(id)}`
    return yield* accept({ ...input, to, isPlain: true }, path, call)
  }),
  doc: {
    summary: "Broadcast to everybody who is registered to a channel",
    ...publishDoc,
    body: ChannelBody,
    bodyExample: pushExample
  }
})
