// What a request asks of a list: its query string read, and the page of objects that answers it.
import type { Fault } from "../faults.ts"
import { decodePercent } from "../routing.ts"
import { readFields } from "./fields.ts"
import { type Filter, jsonOrText, matcherOf, readFilter, timestampOf } from "./filter.ts"
import { decodeToken, invalidToken, type PageToken } from "./page-token.ts"
import { comparePlaces, placeIn, readSort, type SortKey } from "./sort.ts"
import type { JsonObject } from "./value.ts"

const dayMillis = 24 * 60 * 60_000

export interface Listing {
  readonly filters: ReadonlyArray<Filter>
  readonly sort: ReadonlyArray<SortKey>
  readonly fields: ReadonlyArray<string> | undefined
  /** 0: none. */
  readonly limit: number
  readonly token: PageToken | undefined
  /** A filter on the timestamp makes tombstones part of the list. */
  readonly withTombstones: boolean
  /** `_to` was used: it still works, and an Alert says that it is on its way out. */
  readonly deprecated: boolean
}

type Pair = readonly [name: string, value: string]

/** Decoded names and values, in order; undefined when there are bytes that are not UTF-8. */
export const queryPairs = (query: string): ReadonlyArray<Pair> | undefined => {
  const pairs: Array<Pair> = []
  for (const pair of query.split("&")) {
    if (pair === "") continue
    const [name, ...value] = pair.split("=")
    const decoded = [name ?? "", value.join("=")].map((text) =>
      decodePercent(text.replaceAll("+", " "))
    )
    if (decoded[0] === undefined || decoded[1] === undefined) return undefined
    pairs.push([decoded[0], decoded[1]])
  }
  return pairs
}

const bounds = { _since: "gt", _before: "lt", _to: "lt" } as const

export const readListing = (
  pairs: ReadonlyArray<Pair>,
  now: number,
  faults: Array<Fault>
): Listing => {
  const fault = (name: string | null, description: string) =>
    faults.push({ location: "querystring", name, description })
  const values = new Map<string, Array<string>>()
  for (const [name, value] of pairs) values.set(name, [...(values.get(name) ?? []), value])
  const filters: Array<Filter> = []
  const typed = { sort: "", fields: "", limit: 0, token: undefined as PageToken | undefined }

  const bound = (name: keyof typeof bounds, text: string) => {
    const value = jsonOrText(text)
    if (value === null || (text === "" && name === "_to")) return
    const timestamp = timestampOf(value)
    if (timestamp === undefined) fault(name, "Must be a timestamp")
    else if (timestamp > now + dayMillis) fault(name, "Must not be more than a day in the future")
    else filters.push({ field: "last_modified", operator: bounds[name], value: timestamp })
  }

  for (const [name, [text = "", ...repeated]] of values) {
    const isTyped = name.startsWith("_") || name === "id" || name === "last_modified"
    if (
      isTyped &&
      repeated.length > 0 &&
      (name in bounds || ["_limit", "_token", "id", "last_modified"].includes(name))
    ) {
      fault(name, "Must be given once")
      continue
    }
    if (name in bounds) bound(name as keyof typeof bounds, text)
    else if (name === "_sort") typed.sort = text
    else if (name === "_fields") typed.fields = text
    else if (isTyped && text === "") continue
    else if (name === "_limit") {
      const limit = timestampOf(jsonOrText(text))
      if (limit === undefined) fault(name, "Must be a whole number that is not negative")
      else typed.limit = limit
    } else if (name === "_token") {
      typed.token = decodeToken(text)
      if (typed.token === undefined) faults.push(invalidToken)
    } else if (name === "id" && typeof jsonOrText(text) !== "string")
      fault(name, "Must be a string")
    else if (!name.startsWith("_")) {
      const filter = readFilter(name, text)
      if ("location" in filter) faults.push(filter)
      // No object has two values for one field.
      else filters.push(repeated.length > 0 ? { field: name, operator: "in", value: [] } : filter)
    }
  }
  const fields = readFields(typed.fields)
  return {
    filters,
    sort: readSort(typed.sort),
    fields: fields.length === 0 ? undefined : fields,
    limit: typed.limit,
    token: typed.token,
    withTombstones: filters.some(({ field }) => field === "last_modified"),
    deprecated: values.has("_to")
  }
}

/** The smallest of the limits that are set; 0 is none. */
export const effectiveLimit = (...limits: ReadonlyArray<number>): number =>
  Math.min(...limits.map((limit) => limit || Number.MAX_SAFE_INTEGER))

export interface Page {
  readonly shown: ReadonlyArray<JsonObject>
  readonly more: boolean
}

/** Everything that matches, in order. */
export const select = (
  objects: ReadonlyArray<JsonObject>,
  { filters, sort }: Listing
): ReadonlyArray<JsonObject> => {
  const matchers = filters.map(matcherOf)
  const inOrder = comparePlaces(sort)
  return objects
    .filter((object) => matchers.every((matches) => matches(object)))
    .map((object) => ({ object, place: placeIn(object, sort) }))
    .sort((a, b) => inOrder(a.place, b.place))
    .map(({ object }) => object)
}

/** The part that a page shows: strictly behind the last object of the page before. */
export const pageOf = (
  selected: ReadonlyArray<JsonObject>,
  { sort, token }: Listing,
  limit: number
): Page => {
  const inOrder = comparePlaces(sort)
  const last = token === undefined ? undefined : placeIn(token.last_object, sort)
  const rest =
    last === undefined
      ? selected
      : selected.filter((object) => inOrder(placeIn(object, sort), last) > 0)
  return { shown: rest.slice(0, limit), more: rest.length > limit }
}
