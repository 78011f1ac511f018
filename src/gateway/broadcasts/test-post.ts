// POST /subscriptions/{id}/test: sends one push to a browser of the caller, on the way of all
// pushes, and responds with what the push service said.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { pushExample } from "#browser/push.ts"
import { monotonicMillis } from "#clock/clocks.ts"
import { Fate, type PushResult } from "#domain/outcome.ts"
import { storedIn } from "#domain/subscription/subscription.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { directToken } from "#streams/tokens.ts"
import { readBody } from "../http/request.ts"
import { ok } from "../http/response.ts"
import { noStore } from "../http/response-headers.ts"
import { operation } from "../operation.ts"
import { demandRoom, RequestRates } from "../quotas.ts"
import { idInPath, unknownSubscription } from "../subscriptions/form.ts"
import { listOf } from "../write.ts"
import { Accepted, acceptedAt, publishFields } from "./publish.ts"
import { storeBroadcast } from "./store.ts"

/** Short: a person looks at a page and waits. */
const waitMillis = 10_000
/** A test that comes later helps nobody. */
const ttlSeconds = "60"
const lookMillisMin = 20
const lookMillisMax = 500
/** Bytes that a test and its end take of LOG beside its payload. Measured: 1.9 KB. */
const testBytes = 2_000

const Body = Schema.Struct({ data: publishFields.data })
const decodeBody = readBody(Body)

const Result = Schema.Struct({
  outcome: Fate,
  /** The HTTP status of the push service; absent without a response. */
  status: Schema.optionalKey(Schema.Int),
  reason: Schema.String
})

export const testPost = operation({
  access: "caller",
  negotiates: true,
  takesJson: "withBody",
  exposes: ["Location"],
  read: ({ request }, errors) => Effect.map(decodeBody(request, errors), ({ value = {} }) => value),
  run: Effect.fnUntraced(function* (body, call) {
    const { caller, params, request } = call
    const id = yield* idInPath({ params })
    const { user } = caller!
    const stored = storedIn(yield* listOf(user), id)
    if (stored === undefined) return yield* unknownSubscription(id)
    if (stored.suspended !== undefined)
      return ok({ data: { outcome: "dead", reason: "suspended" } }, noStore)
    yield* demandRoom("test")
    const bytes = testBytes + Buffer.byteLength(JSON.stringify(body))
    yield* (yield* RequestRates).ofChange({ user, address: request.address, bytes })
    const to = { channels: [], users: [user], except: [], subscription: id }
    const given = { headers: { TTL: ttlSeconds, Urgency: "high" }, key: undefined }
    const broadcast = yield* storeBroadcast({ ...given, body, to, isPlain: false }, caller!)
    const result = yield* awaitResult(broadcast)
    const pending = acceptedAt("", broadcast, body, call)
    if (result === undefined) return pending
    return { ...ok({ data: result }, { ...pending.headers, ...noStore }), broadcast }
  }),
  doc: {
    summary: "Send a push to a browser of the caller, and say what the push service answered",
    body: Body,
    bodyExample: pushExample,
    responses: { 200: Schema.Struct({ data: Result }), 202: Accepted },
    errors: [400, 404, 413, 415, 507]
  }
})

const awaitResult = Effect.fnUntraced(function* (broadcast: number) {
  const deadline = (yield* monotonicMillis) + waitMillis
  for (let millis = lookMillisMin; ; millis = Math.min(millis * 1.5, lookMillisMax)) {
    const result = yield* resultOf(broadcast)
    if (result !== undefined || (yield* monotonicMillis) >= deadline) return result
    yield* Effect.sleep(millis)
  }
})

/** The outcome of the only push of a broadcast; undefined: none yet. */
const resultOf = Effect.fnUntraced(function* (broadcast: number) {
  const log = yield* EventLog
  const subject = subjects.shardOutcome(directToken, broadcast, "all")
  const last = (yield* log.last("work", subject))?.message
  if (last?.type !== "outcome") return undefined
  if (last.results[0] !== undefined || !last.final)
    return last.results[0] && viewOf(last.results[0])
  // The result is in an earlier outcome, or the subscription was removed meanwhile.
  let found: typeof Result.Type = gone
  yield* log.replay("work", [subject], ({ message }) => {
    if (message.type === "outcome") found = message.results.map(viewOf)[0] ?? found
  })
  return found
})

const gone: typeof Result.Type = { outcome: "gone", reason: "left" }

const viewOf = ({ fate, reason, status }: PushResult): typeof Result.Type => ({
  outcome: fate,
  ...(status === undefined ? {} : { status }),
  reason
})
