// DELETE / and DELETE /users/{user}: ends the subscriptions and registrations of a user, and has
// the user erased. The projector then deletes what LOG has (projection/erase.ts).
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { nextTimestamp } from "#domain/subscription/subscription.ts"
import { renewables } from "#domain/subscription/tombstone.ts"
import { appliedMillis, Watermark } from "#nats/follower/watermark.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { filters, subjects } from "#streams/subjects.ts"
import { directToken } from "#streams/tokens.ts"
import { registeredChannels, registrationsAtOnce } from "#subscriptions/audience.ts"
import { Acknowledgement, accepted, endRegistration } from "../channels/registration.ts"
import type { Call } from "../http/request.ts"
import { type Refused, refuse } from "../http/response.ts"
import { forUserInPath } from "../named-user.ts"
import { operation } from "../operation.ts"
import { changeBytes, isNewcomer, oneWriteAtATime, RequestRates } from "../quotas.ts"
import { changed, changeList, lastSeq, unchanged } from "../write.ts"

/** Subscriptions go first: nothing is sent from then on. A repeat completes what an error left. */
export const userDelete = operation({
  access: "caller",
  run: Effect.fnUntraced(function* (_, call) {
    yield* removeSubscriptions(call)
    const channels = yield* registeredChannels(call.user!.user)
    yield* Effect.forEach(channels, (channel) => endRegistration(channel, call), {
      concurrency: registrationsAtOnce,
      discard: true
    })
    yield* erase(call)
    return accepted
  }),
  doc: {
    summary: "Erase the caller: their subscriptions, registrations and all messages of these",
    responses: { 202: Acknowledgement },
    errors: [409, 429, 507]
  }
})

export const namedUserDelete = {
  ...forUserInPath(
    userDelete,
    "Erase a user: their subscriptions, registrations and all messages of these"
  ),
  access: "eraser"
} as const

const removeSubscriptions = (call: Call) =>
  changeList(call, (list, now) => {
    const first = nextTimestamp(list, now)
    const stored = Object.keys(list.subscriptions)
    const removed = [
      ...stored.map((id, i) => ({ id, lastModified: first + i })),
      ...renewables(list.tombstones)
    ]
    const { id: user } = call.user!
    return Effect.succeed(
      removed.length === 0
        ? unchanged(accepted)
        : changed({ type: "subscription.delete", user, removed }, accepted)
    )
  })

/** Asks for an erasure, and waits until the buckets show it. */
const erase = Effect.fnUntraced(function* (call: Call) {
  const { user } = call.user!
  const tooMany = refuse("too-many-writes")
  const subject = subjects.erase(user)
  const seq = yield* oneWriteAtATime(subject, user, commandFor(call, subject, tooMany), tooMany)
  yield* (yield* Watermark).reached(seq, appliedMillis)
})

/** Conflicts with other processes. Each means that an erasure began, or that one ended. */
const conflictsMax = 5

/** The sequence of the command that erases the user: stores one, unless one is under way. */
const commandFor = Effect.fnUntraced(function* (call: Call, subject: string, tooMany: Refused) {
  const [caller, { user }] = [call.caller!, call.user!]
  const { append } = yield* EventLog
  const at = yield* Clock.currentTimeMillis
  const body = { at, ...(caller.user !== user && { by: caller.id }) }
  for (let n = 0; n < conflictsMax; n++) {
    const [asked, own, letters] = yield* Effect.all(
      [
        lastSeq(subject),
        lastOf([subjects.subscription(user), filters.registrationsOf(user)]),
        // Letters to anybody: the erasure under way lacks those that came after it.
        lastOf([subjects.broadcast("*", directToken), filters.drafts])
      ],
      { concurrency: "unbounded" }
    )
    // Each erasure leaves a fact in LOG for ever. So a repeat waits for the one that is under way,
    // and any other counts, also that of a user of whom LOG has nothing but letters.
    if (asked > Math.max(own, letters)) return asked
    if (n === 0) yield* countErasure(call, own === 0)
    const seq = yield* append("log", { subject, type: "user.erase", body, expect: asked }).pipe(
      Effect.map(({ seq }) => seq),
      Effect.catchTag("AppendConflict", () => Effect.undefined)
    )
    if (seq !== undefined) return seq
  }
  return yield* tooMany
})

/** The sequence of the last message of LOG on some subjects; 0: there is none. */
const lastOf = (filters: ReadonlyArray<string>) =>
  Effect.map(Effect.forEach(filters, lastSeq, { concurrency: "unbounded" }), (all) =>
    Math.max(...all)
  )

/** Fails with 429 where the caller or the address has stored too much. */
const countErasure = Effect.fnUntraced(function* (call: Call, isUnknown: boolean) {
  const { ofChange, ofErasure } = yield* RequestRates
  const { user } = call.caller!
  if (user !== call.user!.user) return yield* ofErasure(user)
  yield* ofChange({
    user,
    address: call.request.address,
    bytes: changeBytes,
    isNewUser: isUnknown && (yield* isNewcomer(call, false))
  })
})
