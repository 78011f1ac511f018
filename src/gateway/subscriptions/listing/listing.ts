// The objects that answer a listing: those that match, in order, and the page of them to show.
import { Effect } from "effect"
import { mapInTurns } from "../../batch/turns.ts"
import { matcherOf } from "./filter.ts"
import type { Listing } from "./query.ts"
import type { Row } from "./row.ts"
import { comparePlaces, type Place, placeIn } from "./sort.ts"
import type { Texts } from "./value.ts"

/** The smallest of the limits that are set; 0 is none. */
export const effectiveLimit = (...limits: ReadonlyArray<number>): number =>
  Math.min(...limits.map((limit) => limit || Number.MAX_SAFE_INTEGER))

/** Everything that passes the filters, in no particular order. */
export const matching = Effect.fnUntraced(function* (
  rows: ReadonlyArray<Row>,
  { filters }: Listing
) {
  if (filters.length === 0) return rows
  const texts: Texts = new WeakMap()
  const matchers = filters.map((filter) => matcherOf(filter, texts))
  const passed = yield* mapInTurns(rows, (row) => matchers.every((matches) => matches(row)))
  return rows.filter((_, i) => passed[i])
})

export interface Page {
  readonly shown: ReadonlyArray<Row>
  readonly more: boolean
}

/** The part of the rows that a page shows: strictly behind the last object of the page before. */
export const pageOf = Effect.fnUntraced(function* (
  rows: ReadonlyArray<Row>,
  { sort, token }: Listing,
  limit: number
) {
  const texts: Texts = new WeakMap()
  const inOrder = comparePlaces(sort)
  const last =
    token === undefined ? undefined : placeIn({ own: token.last_object, data: {} }, sort, texts)
  const placed = yield* mapInTurns(rows, (row) => ({ row, place: placeIn(row, sort, texts) }))
  const isBehind = ({ place }: { readonly place: Place }) =>
    last === undefined || inOrder(place, last) > 0
  const rest = placed.filter(isBehind).sort((a, b) => inOrder(a.place, b.place))
  const page: Page = {
    shown: rest.slice(0, limit).map(({ row }) => row),
    more: rest.length > limit
  }
  return page
})
