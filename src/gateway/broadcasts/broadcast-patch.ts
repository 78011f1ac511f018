// PATCH of a broadcast: changes its state. For those who may see it by its id alone.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { WantedState } from "#domain/broadcast-state.ts"
import { changeState } from "#nats/broadcasts/state.ts"
import { readBody } from "../http/body.ts"
import { refuse } from "../http/errors.ts"
import type { Operation } from "../operation.ts"
import { findOwn } from "./broadcast.ts"
import { Shown, shown } from "./view.ts"

const Body = Schema.Struct({ data: Schema.Struct({ state: WantedState }) })
const decodeBody = readBody(Body)

export const broadcastPatch: Operation<typeof Body.Type | undefined> = {
  access: "principal",
  takesJson: "always",
  exposes: ["Last-Modified", "ETag"],
  read: ({ request }, errors) => Effect.map(decodeBody(request, errors), ({ value }) => value),
  run: Effect.fnUntraced(function* (body, call) {
    const { state: wanted } = body!.data
    const origin = yield* findOwn(call)
    const now = yield* Clock.currentTimeMillis
    const standing = yield* changeState(origin, wanted, call.caller!.id, now).pipe(
      Effect.catchTag("AppendConflict", () => refuse("conflict"))
    )
    const { state } = standing
    if (state !== wanted) return yield* refuse("impossibleState", { details: { state } })
    return yield* shown(origin, standing)
  }),
  doc: {
    summary: "Pause, resume or cancel a broadcast",
    body: Body,
    bodyExample: { data: { state: "paused" } },
    bodyRequired: true,
    responses: { 200: Shown },
    errors: [404, 409, 507]
  }
}
