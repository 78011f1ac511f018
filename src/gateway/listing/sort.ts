// The order of a list, and the place where a page begins. Pure.

import type { JsonObject } from "#basics/json.ts"
import {
  type Comparable,
  comparableOf,
  compare,
  fieldOf,
  nameError,
  type Row,
  sortKeysMax,
  type Texts
} from "./field.ts"

export interface SortKey {
  readonly field: string
  readonly descending: boolean
}

export const newestFirst: SortKey = { field: "last_modified", descending: true }

/**
 * Reads `a,-b,+c`. Returns an error as a string. Skips items that are not field names. Adds the
 * timestamp, which is unique, so that the order is total.
 */
export const readSort = (text: string): ReadonlyArray<SortKey> | string => {
  const sort = new Map<string, SortKey>()
  for (const item of text.split(",")) {
    const [, sign, field] = /^([+-]?)([\w.]+)$/.exec(item.trim()) ?? []
    // A field that occurs again cannot change the order.
    if (field === undefined || sort.has(field)) continue
    const error = nameError(field)
    if (error !== undefined) return error
    if (sort.size === sortKeysMax) return `Must not name more than ${sortKeysMax} fields`
    sort.set(field, { field, descending: sign === "-" })
  }
  if (!sort.has("last_modified")) sort.set("last_modified", newestFirst)
  return [...sort.values()]
}

/** The values of an object's sort fields. */
export type Place = ReadonlyArray<Comparable>

/** The place of an object in the order. */
export const placeIn = (row: Row, sort: ReadonlyArray<SortKey>, texts: Texts): Place =>
  sort.map(({ field }) => comparableOf(fieldOf(row, field), texts))

export const comparePlaces =
  (sort: ReadonlyArray<SortKey>) =>
  (a: Place, b: Place): number => {
    for (const [i, { descending }] of sort.entries()) {
      const order = compare(a[i]!, b[i]!)
      if (order !== 0) return descending ? -order : order
    }
    return 0
  }

/** The sort fields of an object by their names, for a page token. Missing fields stay missing. */
export const placeOf = (row: Row, sort: ReadonlyArray<SortKey>): JsonObject =>
  Object.fromEntries(
    sort.map(({ field }) => [field, fieldOf(row, field)]).filter(([, value]) => value !== undefined)
  )
