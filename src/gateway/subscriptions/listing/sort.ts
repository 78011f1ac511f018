// The order of a list, and where a page begins. Pure.
import { nameError, sortKeysMax } from "./bounds.ts"
import { fieldOf, type Row } from "./row.ts"
import { type Comparable, comparableOf, compare, type JsonObject, type Texts } from "./value.ts"

export interface SortKey {
  readonly field: string
  readonly descending: boolean
}

export const newestFirst: SortKey = { field: "last_modified", descending: true }

/**
 * `a,-b,+c`, or what is wrong with it; an item that is no field name is skipped. Timestamps are
 * unique, so the order is always total.
 */
export const readSort = (text: string): ReadonlyArray<SortKey> | string => {
  const sort = new Map<string, SortKey>()
  for (const item of text.split(",")) {
    const [, sign, field] = /^([+-]?)([\w.]+)$/.exec(item.trim()) ?? []
    // What is equal by a field stays so when the field is named again.
    if (field === undefined || sort.has(field)) continue
    const error = nameError(field)
    if (error !== undefined) return error
    if (sort.size === sortKeysMax) return `Must not name more than ${sortKeysMax} fields`
    sort.set(field, { field, descending: sign === "-" })
  }
  if (!sort.has("last_modified")) sort.set("last_modified", newestFirst)
  return [...sort.values()]
}

export type Place = ReadonlyArray<Comparable>

/** Where an object stands in the order. */
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

/**
 * The values that place an object in the order, by the names of their fields. A missing one stays
 * missing.
 */
export const placeOf = (row: Row, sort: ReadonlyArray<SortKey>): JsonObject =>
  Object.fromEntries(
    sort.map(({ field }) => [field, fieldOf(row, field)]).filter(([, value]) => value !== undefined)
  )
