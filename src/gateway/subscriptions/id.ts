// Ids of subscriptions in paths and bodies, and their errors.
import * as Effect from "effect/Effect"
import { badId, refuse, refuseInvalid } from "../http/errors.ts"
import type { Call } from "../http/request.ts"

/** Whether a text has the syntax of ids in paths and bodies. */
export const isId = (id: string): boolean => /^[A-Za-z0-9][A-Za-z0-9_-]*$/.test(id)

/** The id in the path of a request. Fails with 400 where it has another syntax. */
export const idInPath = ({ params }: Pick<Call, "params">) => {
  const id = params["id"] ?? ""
  return isId(id) ? Effect.succeed(id) : refuseInvalid([badId])
}

/** The error of an id that the user has no subscription of. */
export const unknownSubscription = (id: string) =>
  refuse("unknown-object", { details: { id, resource_name: "subscription" } })
