// POST /broadcasts/{id}/redrive: sends a broadcast again to those whom it did not reach. For
// operators.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import {
  type NotRedriven,
  type Origin,
  redrive,
  standingOf,
  undeliveredOf
} from "#broadcasts/state.ts"
import { readBody } from "../http/request.ts"
import { ok, refuse } from "../http/response.ts"
import { noStore } from "../http/response-headers.ts"
import { operation } from "../operation.ts"
import { demandRoom } from "../quotas.ts"
import { findOwn } from "./broadcast.ts"
import { Accepted, acceptedAt } from "./publish.ts"

const Body = Schema.Struct({ dry_run: Schema.optionalKey(Schema.Boolean) })
const decodeBody = readBody(Body)

const messages = {
  rejected: "The broadcast was rejected: there is nothing to send again.",
  unfinished: "The broadcast is not finished: some of its pushes may still arrive.",
  forgotten: "The outcomes of the broadcast are no longer stored.",
  redriven: "The broadcast was sent again: redrive that one for those who are left.",
  nobody: "The broadcast left nobody to send to again."
} as const

export const redrivePost = operation({
  access: "operator",
  takesJson: "withBody",
  exposes: ["Location"],
  read: ({ request }, errors) => Effect.map(decodeBody(request, errors), ({ value }) => value),
  run: Effect.fnUntraced(function* (body, call) {
    const origin = yield* findOwn(call)
    const refused = ({ former, reason }: NotRedriven) => impossible(origin, reason, former)
    const pushes = yield* Effect.catchTag(undeliveredOf(origin), "NotRedriven", refused)
    if (body?.dry_run === true) return ok({ data: { pushes } }, noStore)
    if (pushes === 0) return yield* impossible(origin, "nobody")
    yield* demandRoom("broadcast")
    const again = yield* redrive(origin, call.caller!.id).pipe(
      Effect.catchTags({ NotRedriven: refused, AppendConflict: () => refuse("too-many-writes") })
    )
    return acceptedAt("", again, {}, call)
  }),
  doc: {
    summary: "Send a broadcast again to those whom it did not reach",
    body: Body,
    bodyExample: { dry_run: true },
    responses: {
      200: Schema.Struct({ data: Schema.Struct({ pushes: Schema.Int }) }),
      202: Accepted
    },
    errors: [404, 409, 507]
  }
})

const impossible = Effect.fnUntraced(function* (
  origin: Origin,
  reason: keyof typeof messages,
  former?: number
) {
  const { state } = yield* standingOf(origin)
  const details = { state, reason, ...(former !== undefined && { broadcast: String(former) }) }
  return yield* refuse("impossible-state", { message: messages[reason], details })
})
