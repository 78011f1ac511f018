// Operations on a user whom the request names: for callers with the right `users`, who act for that
// user, and for operators, whose look at the user is recorded for `bellcast audit --user`.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { Identity } from "#identity/identity.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { Space, usersShare } from "#nats/watch/space.ts"
import { streams } from "#streams/index.ts"
import { subjects } from "#streams/subjects.ts"
import type { UserToken } from "#streams/tokens.ts"
import type { Call } from "./http/request.ts"
import { errorIn, refuseInvalid } from "./http/response.ts"
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

/** An operator's look at a user is stored once in this time, however often it is repeated. */
const lookMillis = 60_000
const writeTimeout = "2 seconds"

/**
 * Records that the caller looks at a user: in the log, and in WORK for as long as pushes are there.
 * `broadcast`: at the pushes of this one alone. Where WORK has no room or no time, the look does
 * not fail, and a warning has it.
 */
export const recordLook = Effect.fnUntraced(function* (
  { caller, isAbout }: Call,
  user: UserToken,
  broadcast?: number
) {
  isAbout(user)
  const { id: by, user: operator } = caller!
  const warn = (fields: object) =>
    Effect.logWarning("the audit lacks a look at a user", {
      by,
      person: user,
      broadcast,
      ...fields
    })
  // The rest of WORK is for broadcasts.
  if ((yield* Space).isFull([streams.work.name], usersShare))
    return yield* warn({ reason: "WORK is almost full" })
  const at = yield* Clock.currentTimeMillis
  const minute = Math.floor(at / lookMillis)
  const subject = subjects.look(user, operator, broadcast ?? "user", minute)
  const body = { by, at, ...(broadcast !== undefined && { broadcast }) }
  const log = yield* EventLog
  yield* log.once("work", { subject, type: "look/1", body }).pipe(
    Effect.timeout(writeTimeout),
    Effect.catch((err) => warn({ err }))
  )
})
