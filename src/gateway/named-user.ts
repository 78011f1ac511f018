// Operations for a user whom the request names, by callers with the right `users`.
import * as Effect from "effect/Effect"
import { Identity } from "#identity/identity.ts"
import { errorIn, refuseInvalid } from "./http/errors.ts"
import type { Call } from "./http/request.ts"
import type { Operation } from "./operation.ts"

/** The description of an error in the id of a user. */
export const userIdFault =
  "Expected a user of this server: <policy>:<id> as GET /v1/ shows it to the user, " +
  "or <policy>:<mail address>"

/** The user in the path, whether or not Bellcast stores anything of them. */
export const userInPath = Effect.fnUntraced(function* ({ params }: Call) {
  const user = (yield* Identity).userOf(params["user"] ?? "")
  return user ?? (yield* refuseInvalid([errorIn("path", null, userIdFault)]))
})

/** The operation for the user in the path instead of for the caller. */
export const forUserInPath = <I, R>(
  operation: Operation<I, R>,
  summary: string
): Operation<I, R | Identity> => ({
  ...operation,
  access: "users",
  run: (input, call) =>
    Effect.flatMap(userInPath(call), (user) => operation.run(input, { ...call, user })),
  doc: { ...operation.doc, summary }
})

/** The path of what belongs to the user of a request: empty for the caller's own. */
export const ownerPath = ({ params, user }: Call): string =>
  params["user"] === undefined ? "" : `/users/${encodeURIComponent(user!.id)}`
