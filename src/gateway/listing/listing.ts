// Selects the objects of a list: those that match the filters, and one page of them in order.
import * as Effect from "effect/Effect"
import { mapInTurns } from "#clock/map-in-turns.ts"
import type { Row, Texts } from "./field.ts"
import { matcherOf } from "./filter.ts"
import type { Listing } from "./query.ts"
import { comparePlaces, type Place, placeIn } from "./sort.ts"

/** The smallest limit. 0 means no limit. */
export const effectiveLimit = (...limits: ReadonlyArray<number>): number =>
  Math.min(...limits.map((limit) => limit || Number.MAX_SAFE_INTEGER))

/** The objects that match all filters, not sorted. */
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

/** One page: the first rows after the last object of the previous page. */
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
