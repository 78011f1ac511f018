// Completes the buckets of an earlier version, which counted no registrations of users and rejected
// the commands of tokens.
import { Effect } from "effect"
import { foldAccessToken } from "#domain/access-token.ts"
import { countsOf } from "#domain/registration.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { eachEntry } from "#nats/kv/entries.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { type EntryKey, keys, metaKey, userOfKey } from "#streams/buckets.ts"
import { followers } from "#streams/followers.ts"
import { filters } from "#streams/subjects.ts"
import type { Sets } from "./sets.ts"
import { stepOf } from "./step.ts"

/**
 * Stored with the checkpoint: every registration up to there is counted. An earlier version would
 * overwrite this note.
 */
export const counted = { counted: 1 }

/** Stored with the checkpoint: every token up to there is folded. */
export const withTokens = { tokens: 1 }

/** Keys that are read and written together. */
const countsAtOnce = 256

interface Counted {
  seq: number
  readonly users: Map<string, number>
}

/** The counts at sequence `from`, by key. */
const countsAt = Effect.fnUntraced(function* (from: number) {
  const counts = new Map<EntryKey<"registrationCounts">, Counted>()
  yield* eachEntry("registrations", (key, value) => {
    if (!("on" in value)) return
    const { on, seq, was } = value
    const user = userOfKey(key)
    const countsKey = keys.registrationCounts(user)
    const found = counts.get(countsKey) ?? { seq: 0, users: new Map<string, number>() }
    counts.set(countsKey, found)
    // A change after the checkpoint will be applied again, and counted then.
    const held = seq > from ? was : on
    found.users.set(user, (found.users.get(user) ?? 0) + Number(held))
    if (seq <= from) found.seq = Math.max(found.seq, seq)
  })
  return counts
})

/**
 * Writes the counts of all users once, which takes about a minute for 1,000,000 users. Returns
 * whether everything is counted. Without room the next start tries again.
 */
export const backfill = Effect.fnUntraced(function* ({ counts: set }: Sets, from: number) {
  const meta = (yield* (yield* Buckets).get(followers.projector.checkpoint, metaKey))?.value
  if (meta?.counted === counted.counted) return true
  const all = [...(yield* countsAt(from))]
  if (all.length > 0) yield* Effect.logInfo("counting the registrations of users", { from })
  for (let i = 0; i < all.length; i += countsAtOnce) {
    const some = all.slice(i, i + countsAtOnce)
    yield* set.load(some.map(([key]) => key))
    for (const [key, { seq, users }] of some) {
      const next = countsOf(seq, users)
      if (JSON.stringify(next) !== JSON.stringify(set.get(key))) set.set(key, next, from + 1)
    }
    yield* set.flush
    if (set.unstoredSince() === Number.POSITIVE_INFINITY) continue
    yield* Effect.logError("the registrations of users are not counted: no room for the counts")
    return false
  }
  return true
})

/**
 * Folds the commands of tokens that an earlier version rejected, while it ran beside this one.
 * Returns whether all are stored.
 */
export const backfillTokens = Effect.fnUntraced(function* ({ tokens: set }: Sets, from: number) {
  const meta = (yield* (yield* Buckets).get(followers.projector.checkpoint, metaKey))?.value
  if (from === 0 || meta?.tokens === withTokens.tokens) return true
  yield* (yield* EventLog).replay("log", [filters.tokens], (stored) =>
    Effect.gen(function* () {
      const step = stepOf(stored)
      if (step.kind !== "token" || stored.seq > from) return
      yield* set.load([step.key])
      const { token } = foldAccessToken(set.get(step.key), step.command, step.name, stored.seq)
      if (token !== undefined) set.set(step.key, token, from + 1)
    })
  )
  yield* set.flush
  if (set.unstoredSince() === Number.POSITIVE_INFINITY) return true
  yield* Effect.logError("the tokens of an earlier version are not stored: no room for them")
  return false
})
