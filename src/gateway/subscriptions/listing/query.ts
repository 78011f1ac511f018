// A query string read: what a request asks of a list, or what is wrong with it. Pure.
import type { ErrorDetail } from "../../http/errors.ts"
import { decodePercent } from "../../http/routing.ts"
import { fieldsMax, nameCharsMax, nameError, parametersMax } from "./bounds.ts"
import { type Filter, jsonOrText, numberOf, readFilter, timestampOf } from "./filter.ts"
import { decodeToken, invalidToken, type PageToken } from "./page-token.ts"
import { newestFirst, readSort, type SortKey } from "./sort.ts"

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

/** A second value would contradict the first. */
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
 * Empty, these are most likely a variable of the client that was not set. Taken as absent, `?id=`
 * would name everything that the user has.
 */
const neverEmpty: ReadonlySet<string> = new Set(["_since", "_before", "_to", "id", "last_modified"])

interface Parameter {
  readonly name: string
  readonly text: string
  readonly isRepeated: boolean
}

/** What is read so far. */
interface Reading {
  readonly filters: Array<Filter>
  sort: ReadonlyArray<SortKey>
  fields: ReadonlyArray<string> | undefined
  limit: number
  token: PageToken | undefined
  withTombstones: boolean
  deprecated: boolean
}

interface Rules {
  readonly now: number
  /**
   * The request removes what the query string selects. A query string that is not fully understood
   * then selects nothing: whatever is ignored widens the selection.
   */
  readonly removes: boolean
}

const readBound = (reading: Reading, { name, text }: Parameter, { now, removes }: Rules) => {
  const value = jsonOrText(text)
  reading.withTombstones = true
  // As in Kinto: no bound, and yet a filter on the timestamp.
  if (value === null && !removes) return undefined
  const timestamp = timestampOf(value)
  if (timestamp === undefined) return "Must be a timestamp"
  if (timestamp > now + dayMillis) return "Must not be more than a day in the future"
  const operator = operatorOfBound.get(name)!
  reading.filters.push({ field: "last_modified", operator, value: timestamp })
  return undefined
}

const readLimit = (reading: Reading, { text }: Parameter, { removes }: Rules) => {
  const limit = numberOf(jsonOrText(text))
  if (limit === undefined) return "Must be a whole number that is not negative"
  if (removes && limit < 1) return "Must be at least 1 where objects are removed"
  reading.limit = Math.trunc(limit)
  return undefined
}

const readFields = (reading: Reading, { text }: Parameter) => {
  const names = text.split(",").map((field) => field.trim())
  const fields = [...new Set(names)].filter((field) => field !== "")
  if (fields.length > fieldsMax) return `Must not name more than ${fieldsMax} fields`
  if (fields.length > 0) reading.fields = fields
  return fields.map(nameError).find((error) => error !== undefined)
}

/** Reads one parameter into `reading`; a text says what is wrong with it. */
const readParameter = (
  reading: Reading,
  parameter: Parameter,
  rules: Rules
): string | ErrorDetail | undefined => {
  const { isRepeated, name, text } = parameter
  if (isRepeated && once.has(name)) return "Must be given once"
  if (text === "" && (rules.removes || neverEmpty.has(name))) return "Must not be empty"
  if (name === "_to") reading.deprecated = true
  if (operatorOfBound.has(name)) return readBound(reading, parameter, rules)
  if (name === "_fields") return readFields(reading, parameter)
  if (name === "_sort") {
    const sort = readSort(text)
    if (typeof sort === "string") return sort
    reading.sort = sort
  } else if (name === "_limit") {
    if (text !== "") return readLimit(reading, parameter, rules)
  } else if (name === "_token") {
    if (text !== "") reading.token = decodeToken(text)
    if (text !== "" && reading.token === undefined) return invalidToken
  } else if (name.startsWith("_"))
    return rules.removes ? "Is not known where objects are removed" : undefined
  else {
    if (name === "id" && typeof jsonOrText(text) !== "string") return "Must be a string"
    const filter = readFilter(name, text)
    if ("location" in filter) return filter
    // No object has two values for one field.
    reading.filters.push(isRepeated ? { field: name, operator: "in", value: [] } : filter)
    if (filter.field === "last_modified") reading.withTombstones = true
  }
  return undefined
}

/** One parameter for each name, with its first value. */
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
    errors.push({ location: "querystring", name, description })
  if (pairs.length > parametersMax) {
    addError(null, `The query string must not have more than ${parametersMax} parameters`)
    return reading
  }
  for (const parameter of parametersOf(pairs)) {
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
