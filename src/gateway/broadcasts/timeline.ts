// GET /broadcasts/{id}/timeline: when pushes had their last outcomes, in at most 300 points.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { standingOf } from "#broadcasts/state.ts"
import { noTimeline, pointsOf } from "#domain/timeline.ts"
import { stamp } from "../http/preconditions.ts"
import { ok } from "../http/response.ts"
import { noStore } from "../http/response-headers.ts"
import { operation } from "../operation.ts"
import { findOwn } from "./broadcast.ts"

const Shown = Schema.Struct({
  data: Schema.Struct({
    /** The width of a point. */
    minutes: Schema.Int,
    points: Schema.Array(
      Schema.Struct({
        /** When the point begins. */
        at: Schema.Int,
        delivered: Schema.Int,
        expired: Schema.Int,
        dead: Schema.Int,
        gone: Schema.Int,
        cancelled: Schema.Int
      })
    )
  }).annotate({ identifier: "Timeline" })
})

export const timelineGet = operation({
  access: "principal",
  exposes: ["Last-Modified", "ETag"],
  run: Effect.fnUntraced(function* (_, call) {
    const origin = yield* findOwn(call)
    const { progress } = yield* standingOf(origin)
    const timeline = progress?.details?.timeline ?? noTimeline
    const data: (typeof Shown.Type)["data"] = {
      minutes: timeline.minutes,
      points: pointsOf(timeline)
    }
    return ok({ data }, { ...stamp(progress?.lastModified ?? origin.stored.at), ...noStore })
  }),
  doc: {
    summary: "When pushes of a broadcast had their last outcomes, by minute",
    responses: { 200: Shown },
    errors: [404]
  }
})
