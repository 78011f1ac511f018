// The order of a list, and where a page begins. Pure.
import { type Comparable, comparableOf, compare, type JsonObject, valueAt } from "./value.ts"

export interface SortKey {
  readonly field: string
  readonly descending: boolean
}

const newestFirst: SortKey = { field: "last_modified", descending: true }

/** `a,-b,+c`; what is no field name is skipped. Timestamps are unique, so that the order is always total. */
export const readSort = (text: string): ReadonlyArray<SortKey> => {
  const sort: Array<SortKey> = []
  const named = new Set<string>()
  for (const item of text.split(",")) {
    const [, sign, field] = /^([+-]?)([\w.]+)$/.exec(item.trim()) ?? []
    // What is equal by a field stays so when it is named again.
    if (field !== undefined && !named.has(field)) sort.push({ field, descending: sign === "-" })
    if (field !== undefined) named.add(field)
  }
  return sort.some(({ field }) => field === "last_modified") ? sort : [...sort, newestFirst]
}

export type Place = ReadonlyArray<Comparable>

/** Where an object stands in the order. */
export const placeIn = (object: JsonObject, sort: ReadonlyArray<SortKey>): Place =>
  sort.map(({ field }) => comparableOf(valueAt(object, field)))

export const comparePlaces =
  (sort: ReadonlyArray<SortKey>) =>
  (a: Place, b: Place): number => {
    for (const [i, { descending }] of sort.entries()) {
      const order = compare(a[i]!, b[i]!)
      if (order !== 0) return descending ? -order : order
    }
    return 0
  }

/** The values that place an object in the order, by the names of their fields. A missing one stays missing. */
export const placeOf = (object: JsonObject, sort: ReadonlyArray<SortKey>): JsonObject =>
  Object.fromEntries(
    sort
      .map(({ field }) => [field, valueAt(object, field)])
      .filter(([, value]) => value !== undefined)
  )
