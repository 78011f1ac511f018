// GET, PUT and DELETE /subscriptions/{id}: one subscription of the caller.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { JsonObject } from "#basics/json.ts"
import { nextTimestamp, type SubscriptionList } from "#domain/subscription/subscription.ts"
import { renewables } from "#domain/subscription/tombstone.ts"
import { stamp, unmet } from "../http/preconditions.ts"
import { checked, errorIn, ok, refuseInvalid } from "../http/response.ts"
import { noStore } from "../http/response-headers.ts"
import { project, type Row } from "../listing/field.ts"
import { readQuery } from "../listing/query.ts"
import { operation } from "../operation.ts"
import { changed, changeList, listOf } from "../write.ts"
import {
  idInPath,
  ListedObject,
  subscriptionView,
  Tombstone,
  tombstone,
  unknownSubscription
} from "./form.ts"
import { postDoc, readPut, store } from "./store.ts"

/** Reads `_fields`, and checks `last_modified` as on the list. */
const read = readQuery(false, ["_fields", "last_modified"])

export const subscriptionGet = operation({
  access: "caller",
  negotiates: true,
  exposes: ["Last-Modified", "ETag", "Cache-Control", "Expires", "Pragma"],
  read,
  run: Effect.fnUntraced(function* ({ listing: { fields }, preconditions }, call) {
    const id = yield* idInPath(call)
    const existing = subscriptionView(yield* listOf(call.caller!.user), id)
    if (existing === undefined) return yield* unknownSubscription(id)
    const target = targetOf(existing)
    yield* checked(unmet(preconditions, target, "read"))
    const row: Row = { own: { id, last_modified: target.timestamp }, data: existing }
    return ok({ data: project(row, fields) }, { ...stamp(target.timestamp), ...noStore })
  }),
  doc: {
    summary: "One subscription of the caller",
    parameters: ["fields", "preconditions"],
    responses: { 200: Schema.Struct({ data: ListedObject }), 304: null },
    errors: [400, 404, 406, 412, 413]
  }
})

export const subscriptionPut = operation({
  access: "caller",
  negotiates: true,
  takesJson: "always",
  exposes: ["Last-Modified", "ETag", "Location"],
  read: readPut,
  run: Effect.fnUntraced(function* ({ posted, preconditions }, call) {
    const id = yield* idInPath(call)
    const other = [posted.claimed, posted.id].find((each) => each !== undefined && each !== id)
    if (other !== undefined) {
      return yield* refuseInvalid([
        errorIn("body", "id", `The id ${other} of the data differs from ${id} in the path`)
      ])
    }
    return yield* changeList(
      call,
      Effect.fnUntraced(function* (list, now) {
        const existing = subscriptionView(list, id)
        const target =
          existing === undefined
            ? { timestamp: list.lastModified, exists: false }
            : targetOf(existing)
        yield* checked(unmet(preconditions, target, "write"))
        return yield* store(call, list, posted, now, existing === undefined ? 201 : 200)
      })
    )
  }),
  doc: {
    summary: "Store or replace a subscription of the caller; the id is that of the endpoint",
    ...postDoc
  }
})

export const subscriptionDelete = operation({
  access: "caller",
  negotiates: true,
  exposes: ["Last-Modified", "ETag"],
  read,
  run: Effect.fnUntraced(function* ({ listing: { fields }, preconditions }, call) {
    const id = yield* idInPath(call)
    const { id: user } = call.caller!
    return yield* changeList(
      call,
      Effect.fnUntraced(function* (list, now) {
        const existing = subscriptionView(list, id)
        if (existing === undefined) return yield* decideUnknown(list, user, id)
        yield* checked(unmet(preconditions, targetOf(existing), "write"))
        const lastModified = nextTimestamp(list, now)
        const data = project({ own: tombstone(id, lastModified), data: {} }, fields)
        return changed(
          { type: "subscription.delete", user, removed: [{ id, lastModified }] },
          ok({ data }, stamp(lastModified))
        )
      })
    )
  }),
  doc: {
    summary: "Remove a subscription of the caller",
    parameters: ["preconditions"],
    responses: { 200: Schema.Struct({ data: Tombstone }) },
    errors: [400, 404, 406, 409, 412, 413, 507]
  }
})

const targetOf = (existing: JsonObject) => ({
  timestamp: existing["last_modified"] as number,
  exists: true,
  existing
})

/**
 * Decides on an id that the list does not have. If a push service ended that subscription, the
 * command voids its secret, so that the browser does not come back by itself.
 */
const decideUnknown = (list: SubscriptionList, user: string, id: string) => {
  const unknown = unknownSubscription(id)
  const removed = renewables(list.tombstones).filter((each) => each.id === id)
  return removed.length === 0
    ? unknown
    : Effect.succeed(changed({ type: "subscription.delete", user, removed }, unknown.response))
}
