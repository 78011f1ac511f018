// Reads the query string of a list: filters, order, fields, limit and page, or the errors. All that
// a client may ask for has a limit here or in select.ts: without them a GET of 15 KB could block
// the event loop for minutes. The clients of Kinto stay far below each.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { millisOf } from "#domain/timestamp.ts"
import { type Preconditions, readPreconditions } from "../http/preconditions.ts"
import { type Call, checkNoBody } from "../http/request.ts"
import { type ErrorDetail, errorIn, refuse } from "../http/response.ts"
import { decodePercent } from "../http/routing.ts"
import { nameCharsMax, nameError } from "./field.ts"
import { invalidToken, isGenuine, pageTokenOf } from "./page.ts"
import {
  type Filter,
  jsonOrText,
  newestFirst,
  numberOf,
  readFilter,
  readSort,
  type Selection
} from "./select.ts"

/** Parameters in a query string. A subscription has about ten fields that are worth a filter. */
const parametersMax = 32

/** Different fields in `_fields`. Each is read in every object. */
const fieldsMax = 64

export interface ListInput {
  readonly listing: Listing
  readonly preconditions: Preconditions
}

/** `removes`: see `Rules`. `only`: the parameters that are read; others are ignored. */
export const readQuery = (removes: boolean, only?: ReadonlyArray<string>) =>
  Effect.fnUntraced(function* (call: Call, errors: Array<ErrorDetail>) {
    const { query, request } = call
    const preconditions = readPreconditions(request, errors)
    const pairs = queryPairs(query)
    if (pairs === undefined) return yield* refuse("undecodable-url")
    const read = pairs.filter(([name]) => only?.includes(name) ?? true)
    const now = yield* Clock.currentTimeMillis
    const listing = readListing(read, errors, { now, removes })
    if (listing.token !== undefined && !(yield* isGenuine(listing.token, call)))
      errors.push(invalidToken)
    yield* checkNoBody(request, errors)
    const input: ListInput = { listing, preconditions }
    return input
  })

/** Reads the query string of a list whose order nobody chooses. */
export const readPages = readQuery(false, ["_limit", "_token"])

export interface Listing extends Selection {
  readonly fields: ReadonlyArray<string> | undefined
  /** 0: no limit. */
  readonly limit: number
  /** Whether the list includes tombstones: true with any filter on the timestamp. */
  readonly withTombstones: boolean
  /** Whether the query string has `_to`, which works but adds a deprecation Alert. */
  readonly deprecated: boolean
}

type Pair = readonly [name: string, value: string]

/** Decoded names and values, in order; undefined when they are not UTF-8. */
export const queryPairs = (query: string): ReadonlyArray<Pair> | undefined => {
  const pairs: Array<Pair> = []
  for (const pair of query.split("&")) {
    if (pair === "") continue
    const equals = pair.indexOf("=")
    const cut = equals === -1 ? [pair, ""] : [pair.slice(0, equals), pair.slice(equals + 1)]
    const [name, value] = cut.map((text) => decodePercent(text.replaceAll("+", " ")))
    if (name === undefined || value === undefined) return undefined
    pairs.push([name, value])
  }
  return pairs
}

const operatorOfBound: ReadonlyMap<string, "gt" | "lt"> = new Map([
  ["_since", "gt"],
  ["_before", "lt"],
  ["_to", "lt"]
])

/** Parameters that may occur only once. */
const once: ReadonlySet<string> = new Set([
  "_since",
  "_before",
  "_to",
  "_limit",
  "_token",
  "id",
  "last_modified"
])

/**
 * Parameters that must not be empty: an empty value is probably an unset variable of the client.
 * Ignored, `?id=` would select all objects of the user.
 */
const neverEmpty: ReadonlySet<string> = new Set(["_since", "_before", "_to", "id", "last_modified"])

interface Parameter {
  readonly name: string
  readonly text: string
  readonly isRepeated: boolean
}

/** The listing that the readers below fill in. */
type Reading = { -readonly [K in keyof Listing]: Listing[K] } & { readonly filters: Array<Filter> }

interface Rules {
  readonly now: number
  /**
   * Whether the request removes the selected objects. Then every unknown parameter is an error:
   * ignoring it would select more objects.
   */
  readonly removes: boolean
}

/** Reads one parameter into `reading`. Returns an error as a description or a whole detail. */
type Read = (
  reading: Reading,
  parameter: Parameter,
  rules: Rules
) => string | ErrorDetail | undefined

/** How far a bound may lie in the future, for a client whose clock is ahead. */
const dayMillis = 24 * 60 * 60_000

const readBound: Read = (reading, { name, text }, { now, removes }) => {
  // An ETag that a compressing proxy made weak is the same timestamp.
  const value = jsonOrText(text.replace(/^W\/(?=")/, ""))
  if (name === "_to") reading.deprecated = true
  reading.withTombstones = true
  // Kinto ignores a null bound, but includes tombstones.
  if (value === null && !removes) return undefined
  const timestamp = numberOf(value)
  if (timestamp === undefined) return "Must be a timestamp"
  if (timestamp > now + dayMillis) return "Must not be more than a day in the future"
  const operator = operatorOfBound.get(name)!
  reading.filters.push({ field: "last_modified", operator, value: timestamp })
  return undefined
}

const readLimit: Read = (reading, { text }, { removes }) => {
  const limit = numberOf(jsonOrText(text))
  if (limit === undefined) return "Must be a whole number that is not negative"
  if (removes && limit < 1) return "Must be at least 1 where objects are removed"
  reading.limit = limit
  return undefined
}

const readFields: Read = (reading, { text }) => {
  const names = text.split(",").map((field) => field.trim())
  const fields = [...new Set(names)].filter((field) => field !== "")
  if (fields.length > fieldsMax) return `Must not name more than ${fieldsMax} fields`
  if (fields.length > 0) reading.fields = fields
  return fields.map(nameError).find((error) => error !== undefined)
}

const readOrder: Read = (reading, { text }) => {
  const sort = readSort(text)
  if (typeof sort === "string") return sort
  reading.sort = sort
  return undefined
}

const readToken: Read = (reading, { text }) => {
  reading.token = pageTokenOf(text)
  return reading.token === undefined ? invalidToken : undefined
}

const readFieldFilter: Read = (reading, { isRepeated, name, text }) => {
  if (name === "id" && typeof jsonOrText(text) !== "string") return "Must be a string"
  const filter = readFilter(name, text)
  if ("location" in filter) return filter
  // Two filters for one field match no object.
  reading.filters.push(isRepeated ? { field: name, operator: "in", value: [] } : filter)
  if (filter.field === "last_modified") reading.withTombstones = true
  return undefined
}

const readUnknown: Read = (_reading, _parameter, { removes }) =>
  removes ? "Is not known where objects are removed" : undefined

const readers: ReadonlyMap<string, Read> = new Map([
  ["_since", readBound],
  ["_before", readBound],
  ["_to", readBound],
  ["_fields", readFields],
  ["_sort", readOrder],
  ["_limit", readLimit],
  ["_token", readToken]
])

const readerOf = (name: string): Read =>
  readers.get(name) ?? (name.startsWith("_") ? readUnknown : readFieldFilter)

const readParameter: Read = (reading, parameter, rules) => {
  const { isRepeated, name, text } = parameter
  if (isRepeated && once.has(name)) return "Must be given once"
  if (text === "") return "Must not be empty"
  return readerOf(name)(reading, parameter, rules)
}

/** The parameters, one per name, with its first value. */
const parametersOf = (pairs: ReadonlyArray<Pair>): ReadonlyArray<Parameter> => {
  const parameters = new Map<string, Parameter>()
  for (const [name, text] of pairs) {
    const first = parameters.get(name)
    parameters.set(name, { name, text: first?.text ?? text, isRepeated: first !== undefined })
  }
  return [...parameters.values()]
}

export const readListing = (
  pairs: ReadonlyArray<Pair>,
  errors: Array<ErrorDetail>,
  rules: Rules
): Listing => {
  const reading: Reading = {
    filters: [],
    sort: [newestFirst],
    fields: undefined,
    limit: 0,
    token: undefined,
    withTombstones: false,
    deprecated: false
  }
  const addError = (name: string | null, description: string) =>
    errors.push(errorIn("querystring", name, description))
  if (pairs.length > parametersMax) {
    addError(null, `The query string must not have more than ${parametersMax} parameters`)
    return reading
  }
  // Any other empty value counts as none, before its name counts as given twice.
  const isRead = ([name, text]: Pair) => text !== "" || rules.removes || neverEmpty.has(name)
  for (const parameter of parametersOf(pairs.filter(isRead))) {
    const { name } = parameter
    const wrong =
      name.length > nameCharsMax
        ? `The name of a parameter must not have more than ${nameCharsMax} characters`
        : readParameter(reading, parameter, rules)
    if (typeof wrong === "string") addError(name.length > nameCharsMax ? null : name, wrong)
    else if (wrong !== undefined) errors.push(wrong)
  }
  return reading
}

/** Functions that read one parameter each, and add what is wrong with it to `errors`. */
export const singles = (query: string, errors: Array<ErrorDetail>) => {
  const pairs = queryPairs(query) ?? []
  const refuse = (name: string, text: string) =>
    void errors.push(errorIn("querystring", name, `Invalid value for ${name}: ${text}`))
  const text = (name: string): string | undefined => {
    const values = pairs.filter(([each]) => each === name).map(([, value]) => value)
    if (values.length > 1) refuse(name, "give it once")
    return values[0]
  }
  return {
    refuse,
    text,
    oneOf: <A extends string>(name: string, all: ReadonlyArray<A>): A | undefined => {
      const value = text(name)
      const found = all.find((each) => each === value)
      if (value !== found) refuse(name, `expected one of ${all.join(", ")}`)
      return found
    },
    /** Milliseconds since the epoch. */
    time: (name: string): number | undefined => {
      const value = text(name)
      if (value === undefined) return undefined
      const millis = millisOf(value)
      if (millis === undefined) refuse(name, "expected a time of RFC 3339")
      return millis
    }
  }
}
