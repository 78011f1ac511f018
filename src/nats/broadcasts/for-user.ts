// The broadcasts that could go to one user, with the pushes to the user, the newest first. No index
// is stored: the outcomes of a shard have one subject, and the shard follows from the user.
import * as Effect from "effect/Effect"
import type { PushResult } from "#domain/outcome.ts"
import { subjects } from "#streams/subjects.ts"
import { directToken, type UserToken } from "#streams/tokens.ts"
import { EventLog } from "../stream/event-log.ts"
import { wholeBroadcast } from "../stream/whole-broadcast.ts"
import { type Listed, listBroadcasts, type Selection } from "./list.ts"
import { listPushes, type PushPlace, type PushSelection } from "./pushes.ts"
import type { Origin } from "./state.ts"

/** Broadcasts whose pushes are read at once. */
const readsAtOnce = 8
/** Pushes that are read at once: a user has fewer browsers. */
const pushesAtOnce = 100

export interface ForUser extends Listed {
  readonly pushes: ReadonlyArray<PushResult>
}

/**
 * Whether a broadcast names the user, or a channel that the user ever joined: with a request for
 * each new set of channels, where pushes would need one for each broadcast.
 */
const makeMayReach = (user: UserToken) => {
  const known = new Map<string, boolean>()
  return Effect.fnUntraced(function* ({ channel, stored }: Origin) {
    const log = yield* EventLog
    // The body of a broadcast to one channel is not decoded.
    const isPlain = channel !== directToken
    const to = isPlain ? undefined : (yield* wholeBroadcast(log, stored))?.to
    if (to?.users.includes(user)) return true
    const channels = isPlain ? [channel] : (to?.channels ?? [])
    const place = channels.join()
    const found = known.get(place)
    if (found !== undefined) return found
    const joins = channels.map((each) => subjects.registration(each, user))
    const isMember = (yield* log.lastOf("log", joins)).length > 0
    known.set(place, isMember)
    return isMember
  })
}

/** The pushes of a broadcast to a user. */
export const pushesTo = Effect.fnUntraced(function* (origin: Origin, user: UserToken) {
  const pushes: Array<PushResult> = []
  for (let from: PushPlace | undefined = { seq: 1, i: 0 }; from !== undefined; ) {
    const selection: PushSelection = { user, from, limit: pushesAtOnce, isWanted: () => true }
    const page: Effect.Success<ReturnType<typeof listPushes>> = yield* listPushes(origin, selection)
    pushes.push(...page.results)
    from = page.next
  }
  return pushes
})

/**
 * A page of the broadcasts that could go to a user. `next`: the id from which the list goes on;
 * undefined: it is complete.
 */
export const listForUser = Effect.fnUntraced(function* (
  user: UserToken,
  selection: Omit<Selection<never, never>, "isShown" | "publisher" | "state">
) {
  const { next, rows } = yield* listBroadcasts({
    ...selection,
    publisher: undefined,
    state: undefined,
    isShown: makeMayReach(user)
  })
  const found = yield* Effect.forEach(
    rows,
    (listed) =>
      Effect.map(pushesTo(listed.origin, user), (pushes): ForUser => ({ ...listed, pushes })),
    { concurrency: readsAtOnce }
  )
  return { found, next }
})
