// GET /registrations: the channels that the caller is registered to, in pages.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { channelsAt, registrationsSince } from "#nats/kv/registered.ts"
import { decodeTokens } from "#streams/tokens.ts"
import { ok } from "../http/request.ts"
import { noStore } from "../http/response-headers.ts"
import { limitOf, nextPage } from "../listing/next-page.ts"
import { type ListInput, readPages } from "../listing/read-query.ts"
import { operation } from "../operation.ts"

/** Most channels of a page. Each is read from LOG, by the sequence of its registration. */
const channelsMax = 100

const Registrations = Schema.Struct({ data: Schema.Array(Schema.Struct({ id: Schema.String })) })

export const registrationsGet = operation({
  access: "caller",
  exposes: ["Next-Page", "Total-Records"],
  read: readPages,
  run: Effect.fnUntraced(function* ({ listing }: ListInput, call) {
    const limit = yield* limitOf(listing, channelsMax)
    const began = yield* registrationsSince(call.caller!.user)
    const behind = Number(listing.token?.last_object["since"] ?? 0)
    const rest = began.filter((since) => since > behind)
    const shown = rest.slice(0, limit)
    const data = decodeTokens(yield* channelsAt(shown)).map((id) => ({ id }))
    const next = yield* nextPage(call, {
      path: "/registrations",
      place: rest.length > limit ? { since: shown.at(-1)! } : undefined,
      limit
    })
    return ok({ data }, { "Total-Records": String(began.length), ...noStore, ...next })
  }),
  doc: {
    summary: "List the channels that the caller is registered to, the first one first",
    parameters: ["pages"],
    responses: { 200: Registrations },
    errors: [400, 413]
  }
})
