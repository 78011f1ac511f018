// The broadcasts that could go to one user, with the pushes to the user, the newest first. No index
// is stored: the outcomes of a shard have one subject, and the shard follows from the user.
import * as Effect from "effect/Effect"
import { type Listed, listBroadcasts, readOn, type Selection, startedIn } from "#broadcasts/list.ts"
import { firstPush, listPushes, type PushPlace } from "#broadcasts/pushes.ts"
import type { Origin } from "#broadcasts/state.ts"
import { readRecipients } from "#broadcasts/whole-broadcast.ts"
import type { PushResult } from "#domain/outcome.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { filters, parseRegistration, subjects } from "#streams/subjects.ts"
import { type ChannelToken, directToken, type UserToken } from "#streams/tokens.ts"

/** Broadcasts whose pushes are read at once. */
const readsAtOnce = 8
/** Most channels of a user that are listed one by one, at about ten requests each. */
const channelsMax = 20
const listsAtOnce = 4
/** Most joins and leaves of a user that are read to know the channels, in 200 KB. */
const commandsMax = 500
/** Pushes that are read at once: a user has fewer browsers. */
const pushesAtOnce = 100

export interface ForUser extends Listed {
  readonly pushes: ReadonlyArray<PushResult>
}

/**
 * Whether a broadcast names the user, or a channel that the user ever joined: with a request for
 * each new set of channels, where pushes would need one for each broadcast. With `wanted`, the
 * broadcast must also go to this channel.
 */
const makeMayReach = (user: UserToken, wanted: ChannelToken | undefined) => {
  const known = new Map<string, boolean>()
  return Effect.fnUntraced(function* ({ channel, stored }: Origin) {
    const log = yield* EventLog
    // The body of a broadcast to one channel is not decoded.
    const isPlain = channel !== directToken
    const to = isPlain ? undefined : yield* readRecipients(log, stored)
    const channels = isPlain ? [channel] : (to?.channels ?? [])
    if (wanted !== undefined && !channels.includes(wanted)) return false
    if (to?.users.includes(user)) return true
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
export const pushesTo = (origin: Origin, user: UserToken) =>
  readOn(Number.POSITIVE_INFINITY, (from: PushPlace | undefined) =>
    listPushes(origin, {
      user,
      from: from ?? firstPush,
      limit: pushesAtOnce,
      isWanted: () => true
    })
  )

/** The channels that a user ever joined; undefined: too many for a list of each. */
const everJoined = Effect.fnUntraced(function* (user: UserToken) {
  const bounds = { from: 1, limit: commandsMax }
  const found = yield* (yield* EventLog).following("log", filters.registrationsOf(user), bounds)
  const channels = new Set(
    found.flatMap(({ subject }) => parseRegistration(subject)?.channel ?? [])
  )
  return found.length < commandsMax && channels.size <= channelsMax ? channels : undefined
})

interface ByUser extends Omit<Selection<never, never>, "isShown" | "publisher" | "state"> {
  /** No further page is wanted: this one has what each list found, however far it was read. */
  readonly isLast?: boolean
}

/** The places in which broadcasts to a user are: a channel each, or all of them. */
const placesFor = Effect.fnUntraced(function* (user: UserToken, { channel }: ByUser) {
  if (channel !== undefined) return [directToken, channel]
  const joined = yield* everJoined(user)
  return joined === undefined ? [undefined] : [directToken, ...joined]
})

/** The newest rows of several lists, of which each goes on from its `next`. */
const merged = (
  lists: ReadonlyArray<{ readonly rows: ReadonlyArray<Listed>; readonly next: number | undefined }>,
  { isLast = false, limit }: Pick<ByUser, "isLast" | "limit">
) => {
  // A list says nothing of what is behind its `next`.
  const end = isLast ? 0 : Math.max(...lists.map(({ next = 0 }) => next))
  const rows = lists
    .flatMap((list) => list.rows)
    .filter(({ origin }) => origin.stored.seq >= end)
    .sort((a, b) => b.origin.stored.seq - a.origin.stored.seq)
  return rows.length > limit
    ? { rows: rows.slice(0, limit), next: rows[limit - 1]!.origin.stored.seq }
    : { rows, next: end > 0 ? end : undefined }
}

/**
 * A page of the broadcasts that could go to a user. `next`: the id from which the list goes on;
 * undefined: it is complete.
 */
export const listForUser = Effect.fnUntraced(function* (user: UserToken, selection: ByUser) {
  const isShown = makeMayReach(user, selection.channel)
  const startedInSpan = selection.startedInSpan ?? (yield* Effect.cached(startedIn(selection)))
  const all = { ...selection, startedInSpan, publisher: undefined, state: undefined, isShown }
  const lists = yield* Effect.forEach(
    yield* placesFor(user, selection),
    (channel) => listBroadcasts({ ...all, channel }),
    { concurrency: listsAtOnce }
  )
  const { next, rows } = merged(lists, selection)
  const found = yield* Effect.forEach(
    rows,
    (listed) =>
      Effect.map(pushesTo(listed.origin, user), (pushes): ForUser => ({ ...listed, pushes })),
    { concurrency: readsAtOnce }
  )
  return { rows: found, next }
})
