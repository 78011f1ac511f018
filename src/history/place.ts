// How long the history of LOG is, and up to where old messages have been deleted that nothing rests
// on. The place is in the entry `meta` of the bucket `permissions`, which is seldom written: a
// rebuild, which makes it anew, has LOG looked at from its beginning.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { historyDaysMin } from "#domain/history.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import type { Meta } from "#nats/kv/values.ts"
import { metaKey } from "#streams/buckets.ts"

/** Default of BELLCAST_HISTORY_DAYS. */
export const historyDaysDefault = 400

/** Days of LOG from which every message stays: usually, and where LOG is nearly full. */
export const HistoryDays: Context.Reference<{ readonly usual: number; readonly shortest: number }> =
  Context.Reference("bellcast/history/HistoryDays", {
    defaultValue: () => ({ usual: historyDaysDefault, shortest: historyDaysMin })
  })

const bucket = "permissions"

export type HistoryPlace = Pick<Meta, "historyUpTo" | "historyFrom" | "deleting">

export const readHistoryPlace = Effect.gen(function* () {
  const stored = yield* (yield* Buckets).get(bucket, metaKey)
  const { deleting = [], historyFrom = 0, historyUpTo = 0 } = stored?.value ?? {}
  return { deleting, historyFrom, historyUpTo }
})

export const writeHistoryPlace = Effect.fnUntraced(function* (place: HistoryPlace) {
  const buckets = yield* Buckets
  const stored = yield* buckets.get(bucket, metaKey)
  const meta: Meta = { ...(stored?.value ?? { v: 1 }), ...place }
  yield* buckets.put(bucket, metaKey, meta, stored?.revision ?? 0)
})
