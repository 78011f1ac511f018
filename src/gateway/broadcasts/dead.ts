// GET /dead: how many pushes were given up, and why. For operators.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { listDeadLetters } from "#broadcasts/pushes.ts"
import { broadcastIdIn } from "#domain/broadcast.ts"
import type { DeadLetter } from "#domain/job.ts"
import { pushServiceOf } from "#domain/subscription/endpoint.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { ok } from "../http/response.ts"
import { noStore } from "../http/response-headers.ts"
import { nextPage } from "../listing/page.ts"
import { type ListInput, readQuery, singles } from "../listing/query.ts"
import { operation } from "../operation.ts"

const Cause = Schema.Struct({
  reason: Schema.String,
  /** HTTP status of the last response; absent where there was none. */
  status: Schema.optionalKey(Schema.Int),
  push_service: Schema.String,
  pushes: Schema.Int,
  broadcasts: Schema.Int,
  /** The id of the latest one. */
  last_broadcast: Schema.String,
  first_at: Schema.Int,
  last_at: Schema.Int
}).annotate({ identifier: "CauseOfDeath" })

const readPages = readQuery(false, ["_token"])

export const deadGet = operation({
  access: "operator",
  exposes: ["Next-Page"],
  read: Effect.fnUntraced(function* (call, errors) {
    const input = yield* readPages(call, errors)
    const { refuse, text, time } = singles(call.query, errors)
    const id = text("broadcast")
    const broadcast = id === undefined ? undefined : broadcastIdIn(id)
    if (id !== undefined && broadcast === undefined) refuse("broadcast", "expected an id")
    return { ...input, broadcast, since: time("since") }
  }),
  run: Effect.fnUntraced(function* (input, call) {
    const from = yield* begin(input)
    const { next, rows } =
      from === undefined
        ? { rows: [], next: undefined }
        : yield* listDeadLetters(input.broadcast, from)
    const pages = yield* nextPage(call, {
      path: "/dead",
      place: next === undefined ? undefined : { seq: next },
      limit: undefined
    })
    return ok({ data: causesOf(rows) }, { ...noStore, ...pages })
  }),
  doc: {
    summary: "Count the pushes that were given up, by cause",
    parameters: ["token", "dead"],
    responses: { 200: Schema.Struct({ data: Schema.Array(Cause) }) },
    errors: [413]
  }
})

/** The sequence in WORK from which a list goes on, or begins. Undefined: nothing is so late. */
const begin = Effect.fnUntraced(function* ({
  listing,
  since
}: ListInput & { readonly since: number | undefined }) {
  const place = listing.token?.last_object["seq"]
  if (place !== undefined) return Number(place)
  return since === undefined ? 1 : yield* (yield* EventLog).firstSince("work", since)
})

/** The causes of dead letters, the most frequent first. */
const causesOf = (letters: ReadonlyArray<DeadLetter>) =>
  [
    ...Map.groupBy(letters, ({ reason, service, status }) =>
      JSON.stringify([reason, status, service])
    ).values()
  ]
    .map(causeOf)
    .sort((a, b) => b.pushes - a.pushes)

const causeOf = (letters: ReadonlyArray<DeadLetter>): typeof Cause.Type => {
  const first = letters[0]!
  const { reason, status } = first
  const broadcasts = new Set(letters.map(({ broadcast }) => broadcast))
  const times = letters.map(({ at }) => at)
  return {
    reason,
    ...(status !== undefined && { status }),
    push_service: pushServiceOf(first),
    pushes: letters.length,
    broadcasts: broadcasts.size,
    last_broadcast: String(Math.max(...broadcasts)),
    first_at: Math.min(...times),
    last_at: Math.max(...times)
  }
}
