// The erasure of a user in the output of verbs: when that was, and what is left to see.
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { erasureOf } from "#history/past.ts"
import { readServerTime } from "#nats/watch/server-time.ts"
import { streams } from "#streams/index.ts"
import type { UserToken } from "#streams/tokens.ts"
import { note, printRows, type Shown } from "../terminal/output.ts"

/** Times are in milliseconds since the epoch. */
export interface Erased {
  /** When the user was erased, or when that was asked for. */
  readonly erased: number
  /** The erasure is not done yet: what was before may still be there. */
  readonly under_way?: true
  /** Until when WORK may have outcomes from before, under the pseudonym; absent: it has none. */
  readonly outcomes_until?: number
}

/** When the outcomes from before an erasure have expired, in milliseconds since the epoch. */
export const outcomesUntil = (erased: number): number => erased + streams.work.maxAgeMillis

/** The last erasure of a user, if that was at a time or later; undefined: there was none. */
export const erasureSince = Effect.fnUntraced(function* (user: UserToken, since: number) {
  const erasure = yield* erasureOf(user)
  if (erasure === undefined || erasure.at < since) return undefined
  const now = (yield* readServerTime).serverMillis
  const until = outcomesUntil(erasure.at)
  const found: Erased = {
    erased: erasure.at,
    ...(!erasure.isDone && { under_way: true }),
    ...(until > now && { outcomes_until: until })
  }
  return found
})

/** The erasure of a user in words: when, and where the rest is. */
export const erasedText = (
  { erased, outcomes_until: until, under_way }: Erased,
  user: UserToken
): string => {
  const seen = `bellcast audit BROADCAST --user ${user}`
  const rest =
    until === undefined
      ? ""
      : "; outcomes of pushes from before stay under the pseudonym until " +
        `${new Date(until).toISOString()}: ${seen}`
  const before = under_way ? underWay : "LOG says nothing from before"
  return `${new Date(erased).toISOString()}: ${before}${rest}`
}

const underWay = "that is under way, and LOG may still have what was before"

/** Says on standard error that a user was erased, where the output is for a machine. */
export const noteErased = Effect.fnUntraced(function* (user: UserToken) {
  const found = yield* erasureSince(user, 0)
  if (found !== undefined) yield* note(`the user was erased ${erasedText(found, user)}`)
})

/**
 * Prints broadcasts to a user since a time, and below them that the user was erased: broadcasts to
 * channels are missing then. `json`: as lines of JSON.
 */
export const printToUser = Effect.fnUntraced(function* <R>(
  json: boolean,
  rows: ReadonlyArray<R>,
  shown: Shown<R>,
  { since, user }: { readonly since: number; readonly user: UserToken }
) {
  const found = yield* erasureSince(user, since)
  // Without rows the table says that there was no broadcast, which nobody knows then.
  if (rows.length > 0 || found === undefined) yield* printRows(json, rows, shown)
  if (found === undefined) return
  const text = `${missing}.\nthe user was erased ${erasedText(found, user)}`
  yield* Console.log(json ? JSON.stringify({ ...found, why: missing }) : text)
})

const missing =
  "LOG no longer says which broadcasts to channels were for the user before the erasure"
