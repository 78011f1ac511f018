// Filters of a list by fields: `min_age=3`, `in_id=a,b`, `has_expirationTime=true`. Pure.
import { parseWhole } from "#basics/json.ts"
import { matchesWildcard } from "#basics/wildcard.ts"
import { type ErrorDetail, errorIn } from "../http/errors.ts"
import {
  comparableOf,
  compareWith,
  fieldOf,
  nameError,
  patternCharsMax,
  type Row,
  type Texts,
  ValueSet,
  valuesMax
} from "./field.ts"

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

/** Milliseconds since the epoch, as a number or in a string such as an ETag, else undefined. */
export const timestampOf = numberOf

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
  if (field === "last_modified" && values.some((each) => timestampOf(each) === undefined))
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
  return Array.isArray(value) ? value.map(timestampOf) : timestampOf(value)
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
export const matcherOf = (filter: Filter, texts: Texts): ((row: Row) => boolean) => {
  const holds = testOf(filter, texts)
  return (row) => holds(fieldOf(row, filter.field))
}
