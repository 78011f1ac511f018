// Operations on a user whom the request names: for callers with the right `users`, who act for that
// user, and for operators, whose look at the user is recorded for `bellcast audit --user`. And the
// record of looks at what others published, for `bellcast audit BROADCAST`.
import { hash } from "node:crypto"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { Identity, type User } from "#identity/identity.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { Space, usersShare } from "#nats/watch/space.ts"
import { streams } from "#streams/index.ts"
import { subjects } from "#streams/subjects.ts"
import { isUserToken, type UserToken } from "#streams/tokens.ts"
import type { Call } from "./http/request.ts"
import { errorIn, refuseInvalid } from "./http/response.ts"
import type { Operation } from "./operation.ts"

/** The description of an error in the id of a user. */
export const userIdFault =
  "Expected a user of this server: <policy>:<id> as GET /v1/ shows it to the user, " +
  "or <policy>:<mail address>"

/** Begins the name of a user of a broadcast as its publisher gets it back: LOG has no id there. */
const byPseudonym = "pseudonym:"

/** A user of a broadcast, for its publisher alone: `recipientOf` knows the user by it. */
export const recipientName = (user: UserToken): string => `${byPseudonym}${user}`

/** How a broadcast or a draft may name a user: by an id, or as a publisher gets one back. */
export const recipients = Effect.map(Identity, ({ isUserId, userOf }) => {
  const known = (given: string): User | undefined => {
    const user = given.slice(byPseudonym.length)
    return given.startsWith(byPseudonym) && isUserToken(user) ? { id: given, user } : undefined
  }
  return {
    isRecipient: (given: string): boolean => known(given) !== undefined || isUserId(given),
    recipientOf: (given: string): User | undefined => known(given) ?? userOf(given)
  }
})

/** The user in the path, whether or not Bellcast stores anything of them. */
export const userInPath = Effect.fnUntraced(function* ({ params }: Call) {
  const user = (yield* Identity).userOf(params["user"] ?? "")
  return user ?? (yield* refuseInvalid([errorIn("path", null, userIdFault)]))
})

/** The operation for the user in the path instead of for the caller. */
export const forUserInPath = <I, R>(
  { read, ...operation }: Operation<I, R>,
  summary: string
): Operation<I, R | Identity> => ({
  ...operation,
  access: "users",
  ...(read && {
    // An impossible id is an error of `run`, after all of those that this finds.
    read: (call, errors) =>
      Effect.flatMap(Identity, ({ userOf }) =>
        read({ ...call, user: userOf(call.params["user"] ?? "") ?? call.user }, errors)
      )
  }),
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
  yield* log.once("work", { subject, type: "look", body }).pipe(
    Effect.timeout(writeTimeout),
    Effect.catch((err) => warn({ err }))
  )
})

/** A page reads a list again and again: its look is stored once in this time. */
const listLookMillis = 60 * 60_000

/**
 * Records that the caller, an operator, sees what others published: in WORK, as `recordLook` does.
 * `broadcasts`: their ids, the newest first.
 */
export const recordLookAtBroadcasts = Effect.fnUntraced(function* (
  { caller }: Call,
  broadcasts: ReadonlyArray<number>
) {
  const { id: by, user: operator } = caller!
  if (broadcasts.length === 0) return
  const [last, first] = [broadcasts[0], broadcasts.at(-1)]
  const warn = (fields: object) =>
    Effect.logWarning("the audit lacks a look at broadcasts", { by, first, last, ...fields })
  if ((yield* Space).isFull([streams.work.name], usersShare))
    return yield* warn({ reason: "WORK is almost full" })
  const at = yield* Clock.currentTimeMillis
  const hour = Math.floor(at / listLookMillis)
  // Of all ids: a filter can list another broadcast between the same first and last one.
  const idsHash = hash("sha256", broadcasts.join(), "base64url")
  const subject = subjects.lookAtBroadcasts(operator, idsHash, hour)
  const log = yield* EventLog
  yield* log.once("work", { subject, type: "look.broadcasts", body: { by, broadcasts, at } }).pipe(
    Effect.timeout(writeTimeout),
    Effect.catch((err) => warn({ err }))
  )
})
