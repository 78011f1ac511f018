// POST /drafts/{id}/publish: the draft that was reviewed becomes a broadcast, once, however often
// the request is repeated. NATS ends the draft by storing the broadcast, which names its form.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { wholeBroadcast } from "#broadcasts/whole-broadcast.ts"
import { gatewaySource, publisherOf } from "#domain/broadcast.ts"
import { appliedMillis, Watermark } from "#nats/follower/watermark.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { filters, subjects } from "#streams/subjects.ts"
import { directToken } from "#streams/tokens.ts"
import {
  Accepted,
  acceptedBefore,
  Counted,
  publishDirect,
  readDirect
} from "../broadcasts/publish.ts"
import { nameOfDraft } from "../broadcasts/store.ts"
import { type Preconditions, readPreconditions, unmet } from "../http/preconditions.ts"
import { type ApiRequest, type Call, readBody } from "../http/request.ts"
import { checked, type ErrorDetail, errorIn, refuse, refuseInvalid } from "../http/response.ts"
import { operation } from "../operation.ts"
import { demandSight, targetOf } from "./draft.ts"
import { type Content, draftIdOf, findDraft, unknownDraft } from "./form.ts"

const Body = Schema.Struct({
  dry_run: Schema.optionalKey(Schema.Boolean),
  delay_seconds: Schema.optionalKey(Schema.Int)
})
const decodeBody = readBody(Body)

export const draftPublishPost = operation({
  access: "principal",
  takesJson: "withBody",
  exposes: ["Location"],
  read: Effect.fnUntraced(function* ({ request }, errors) {
    const { ifMatch } = readPreconditions(request, errors)
    if (ifMatch === "*" || (ifMatch?.length ?? 0) > 1) errors.push(notReviewed)
    const { value = {} } = yield* decodeBody(request, errors)
    return { ifMatch, options: value }
  }),
  run: Effect.fnUntraced(function* ({ ifMatch, options }, call) {
    const id = yield* draftIdOf(call)
    if (ifMatch === undefined) return yield* refuse("precondition-required")
    yield* appliedBroadcasts
    const { draft: found } = yield* findDraft(id)
    if (found === undefined) return yield* publishedBefore(id, ifMatch, call)
    const draft = yield* demandSight(found, id, call)
    yield* checked(unmet({ ifMatch, ifNoneMatch: undefined }, targetOf(draft), "write"))
    const errors: Array<ErrorDetail> = []
    const input = yield* readDirect(requestOf(draft.content, options, call.request), errors)
    if (errors.length > 0) return yield* refuseInvalid(errors)
    const response = yield* publishDirect(input, call, draft)
    if (response.broadcast !== undefined) yield* shown(response.broadcast)
    return response
  }),
  doc: {
    summary: "Publish a draft as it was reviewed; repeated, it is the same broadcast",
    parameters: ["ifMatch"],
    body: Body,
    bodyExample: { dry_run: true },
    responses: { 200: Counted, 202: Accepted },
    errors: [400, 403, 404, 412, 413, 415, 428, 429, 507]
  }
})

const notReviewed = errorIn(
  "header",
  "If-Match",
  "If-Match must be one ETag: that of the draft as it was reviewed"
)

/** The request that would publish the same by POST /broadcasts. */
const requestOf = (
  { topic, ttl, urgency, ...content }: Content,
  options: typeof Body.Type,
  request: ApiRequest
): ApiRequest => {
  const bytes = new TextEncoder().encode(JSON.stringify({ ...content, ...options }))
  return {
    ...request,
    headers: { topic, urgency, ttl: ttl === undefined ? undefined : String(ttl) },
    hasBody: true,
    body: () => Effect.succeed(bytes)
  }
}

/**
 * Waits until the projection has applied all broadcasts: without it a draft would look as if it had
 * not been published, and after an hour NATS does not know the name of the broadcast any more.
 */
const appliedBroadcasts = Effect.gen(function* () {
  const last = yield* (yield* EventLog).last("log", filters.broadcasts)
  if (last !== undefined) yield* (yield* Watermark).reached(last.seq, appliedMillis)
})

/** Waits until the next read shows that the draft has ended. The broadcast counts, if none does. */
const shown = (broadcast: number) =>
  Effect.flatMap(Watermark, ({ reached }) => Effect.ignore(reached(broadcast, appliedMillis)))

/** The response to who published this form of a draft, and asks again. */
const publishedBefore = Effect.fnUntraced(function* (
  id: string,
  ifMatch: NonNullable<Preconditions["ifMatch"]>,
  call: Call
) {
  const [, at] = /^"(\d{1,15})"$/.exec(ifMatch[0] ?? "") ?? []
  if (at === undefined) return yield* unknownDraft(id)
  const log = yield* EventLog
  const subject = subjects.broadcast(gatewaySource, directToken)
  const messageId = nameOfDraft({ id, at: Number(at) })
  const broadcast = yield* log.named("log", { subject, messageId })
  const stored = broadcast === undefined ? undefined : yield* log.at("log", broadcast)
  const whole = stored === undefined ? undefined : yield* wholeBroadcast(log, stored)
  if (whole === undefined || publisherOf(gatewaySource, stored!.header) !== call.caller!.id)
    return yield* unknownDraft(id)
  return yield* acceptedBefore(broadcast!, whole, call)
})
