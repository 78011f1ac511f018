// The order of a list, and where a page begins. Pure.
import { compareValues, type JsonObject, valueAt } from "./value.ts"

export interface SortKey {
  readonly field: string
  readonly descending: boolean
}

const newestFirst: SortKey = { field: "last_modified", descending: true }

/** `a,-b,+c`; what is no field name is skipped. Timestamps are unique, so that the order is always total. */
export const readSort = (text: string): ReadonlyArray<SortKey> => {
  const sort: Array<SortKey> = []
  for (const item of text.split(",")) {
    const [, sign, field] = /^([+-]?)([\w.]+)$/.exec(item.trim()) ?? []
    if (field !== undefined) sort.push({ field, descending: sign === "-" })
  }
  return sort.some(({ field }) => field === "last_modified") ? sort : [...sort, newestFirst]
}

export const compareObjects =
  (sort: ReadonlyArray<SortKey>) =>
  (a: JsonObject, b: JsonObject): number => {
    for (const { descending, field } of sort) {
      const order = compareValues(valueAt(a, field), valueAt(b, field))
      if (order !== 0) return descending ? -order : order
    }
    return 0
  }

/** The values that place an object in the order, by the names of their fields. A missing one stays missing. */
export const placeOf = (object: JsonObject, sort: ReadonlyArray<SortKey>): JsonObject =>
  Object.fromEntries(sort.map(({ field }) => [field, valueAt(object, field)]).filter(([, value]) => value !== undefined))
