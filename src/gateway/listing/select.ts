// Selects the objects of a list: those that match the filters (`min_age=3`, `in_id=a,b`,
// `has_expirationTime=true`), and one page of them in order (`_sort=a,-b`).
import * as Effect from "effect/Effect"
import { type JsonObject, parseWhole } from "#basics/json.ts"
import { matchesWildcard } from "#basics/wildcard.ts"
import { mapInTurns } from "#clock/map-in-turns.ts"
import { type ErrorDetail, errorIn } from "../http/response.ts"
import {
  type Comparable,
  comparableOf,
  compare,
  compareWith,
  fieldOf,
  nameError,
  type Row,
  type Texts,
  ValueSet
} from "./field.ts"
import type { PageToken } from "./page.ts"

/** The objects that a list shows: those that match, in this order, behind the last page. */
export interface Selection {
  readonly filters: ReadonlyArray<Filter>
  readonly sort: ReadonlyArray<SortKey>
  readonly token: PageToken | undefined
}

/** The objects that match all filters, not sorted. */
export const matching = Effect.fnUntraced(function* (
  rows: ReadonlyArray<Row>,
  { filters }: Pick<Selection, "filters">
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
  { sort, token }: Selection,
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

/** Values in `in_` and `exclude_`. A user has at most 50 subscriptions and 1,000 tombstones. */
const valuesMax = 1_100

/**
 * Characters in the pattern of `like_`. Searching a text costs at most its length times that of the
 * pattern: 16 KiB (the largest stored text) times 256 take less than 5 ms.
 */
const patternCharsMax = 256

const operators = [
  "min",
  "max",
  "not",
  "lt",
  "gt",
  "in",
  "exclude",
  "like",
  "has",
  "contains_any",
  "contains"
] as const
type Operator = (typeof operators)[number] | "equal"

export interface Filter {
  readonly field: string
  readonly operator: Operator
  readonly value: unknown
}

const prefixed = new RegExp(`^(${operators.join("|")})_([\\w.]+)$`)

/** The JSON value of a text, or the text itself when it is not JSON or no value is exactly it. */
export const jsonOrText = (text: string): unknown => {
  const parsed = parseWhole(text)
  return typeof parsed === "string" || "loss" in parsed ? text : parsed.json
}

/** A whole number from 0 to 2^63, bare or in a string; undefined for other values. */
export const numberOf = (value: unknown): number | undefined => {
  const number = typeof value === "string" && /^\d{1,19}$/.test(value) ? Number(value) : value
  return typeof number === "number" && Number.isInteger(number) && number >= 0 && number <= 2 ** 63
    ? number
    : undefined
}

const isListOperator = (operator: Operator): boolean => operator === "in" || operator === "exclude"

const likeError = (value: unknown): string | undefined => {
  if (typeof value !== "string") return "Must be a string"
  return value.length > patternCharsMax
    ? `Must not have more than ${patternCharsMax} characters`
    : undefined
}

/** The error of values that a field of the server cannot have. */
const typeError = (
  field: string,
  values: ReadonlyArray<unknown>,
  operator: Operator
): string | undefined => {
  if (field === "last_modified" && values.some((each) => numberOf(each) === undefined))
    return "Must be a timestamp"
  const isIdList = field === "id" && isListOperator(operator)
  return isIdList && values.some((each) => typeof each !== "string")
    ? "Must be a list of strings"
    : undefined
}

/** The error of a filter's value; undefined for a valid one. */
const valueError = ({ field, operator, value }: Filter): string | undefined => {
  const values = isListOperator(operator) ? (value as Array<unknown>) : [value]
  if (values.length > valuesMax) return `Must not have more than ${valuesMax} values`
  switch (operator) {
    case "has":
      return typeof value === "boolean" ? undefined : "Must be true or false"
    case "contains":
    case "contains_any":
      return field === "id" || field === "last_modified" ? "Is not an array" : undefined
    case "like":
      return likeError(value) ?? typeError(field, values, operator)
    default:
      return typeError(field, values, operator)
  }
}

/** The value that a filter compares with: an array for `contains`, numbers for timestamps. */
const comparedValue = ({ field, operator, value }: Filter): unknown => {
  if (operator === "contains" || operator === "contains_any")
    return Array.isArray(value) ? value : [value]
  if (field !== "last_modified" || operator === "has" || operator === "like") return value
  return Array.isArray(value) ? value.map(numberOf) : numberOf(value)
}

/** The filter of a query parameter, or its error. */
export const readFilter = (name: string, text: string): Filter | ErrorDetail => {
  const error = (description: string) => errorIn("querystring", name, description)
  if (name.includes("\0") || text.includes("\0")) return error("Must not contain null characters")
  const [, prefix, target] = prefixed.exec(name) ?? []
  const operator = (prefix as Operator | undefined) ?? "equal"
  const field = target ?? name
  const wrongName = nameError(field)
  if (wrongName !== undefined) return error(wrongName)
  const value = isListOperator(operator) ? text.split(",").map(jsonOrText) : jsonOrText(text)
  const filter = { field, operator, value }
  const wrongValue = valueError(filter)
  return wrongValue === undefined ? { ...filter, value: comparedValue(filter) } : error(wrongValue)
}

/**
 * A test for a case-insensitive substring. With `*`, which matches any text, the pattern must match
 * the whole text. All other characters are literal.
 */
const likeOf = (pattern: string): ((found: unknown) => boolean) => {
  const wanted = pattern.toLowerCase()
  const matches = wanted.includes("*")
    ? (subject: string) => matchesWildcard(wanted, subject)
    : (subject: string) => subject.includes(wanted)
  return (found) => typeof found === "string" && matches(found.toLowerCase())
}

/** The test that a filter makes of a field's value. */
const testOf = ({ operator, value }: Filter, texts: Texts): ((found: unknown) => boolean) => {
  const list = (): ValueSet => new ValueSet(Array.isArray(value) ? value : [value])
  const order = (accepts: (order: number) => boolean) => {
    const bound = comparableOf(value, texts)
    return (found: unknown) => accepts(compareWith(found, bound, texts))
  }
  const negated = (holds: (found: unknown) => boolean) => (found: unknown) => !holds(found)
  const within = (set: ValueSet) => (found: unknown) => found !== undefined && set.has(found, texts)
  switch (operator) {
    case "equal":
      return within(new ValueSet([value]))
    case "not":
      return negated(within(new ValueSet([value])))
    case "lt":
      return order((each) => each < 0)
    case "gt":
      return order((each) => each > 0)
    case "min":
      return order((each) => each >= 0)
    case "max":
      return order((each) => each <= 0)
    case "in":
      return within(list())
    case "exclude":
      return negated(within(list()))
    case "like":
      return likeOf(value as string)
    case "has":
      return (found) => (found !== undefined) === value
    case "contains": {
      const set = list()
      return (found) => Array.isArray(found) && set.isWithin(found)
    }
    case "contains_any": {
      const set = list()
      return (found) => Array.isArray(found) && found.some((each) => set.has(each))
    }
  }
}

/** A test whether an object matches. Prepares the filter's value once for all objects. */
const matcherOf = (filter: Filter, texts: Texts): ((row: Row) => boolean) => {
  const holds = testOf(filter, texts)
  return (row) => holds(fieldOf(row, filter.field))
}

export interface SortKey {
  readonly field: string
  readonly descending: boolean
}

export const newestFirst: SortKey = { field: "last_modified", descending: true }

/** Different fields in `_sort`. Each is read, and may be serialised, in every object. */
const sortKeysMax = 8

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
type Place = ReadonlyArray<Comparable>

/** The place of an object in the order. */
const placeIn = (row: Row, sort: ReadonlyArray<SortKey>, texts: Texts): Place =>
  sort.map(({ field }) => comparableOf(fieldOf(row, field), texts))

const comparePlaces =
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
