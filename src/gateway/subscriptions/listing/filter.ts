// Filters over list fields: `min_age=3`, `in_id=a,b`, `has_expirationTime=true`. Pure.

import { parseJson } from "#domain/json.ts"
import type { ErrorDetail } from "../../http/errors.ts"
import { nameError, patternCharsMax, valuesMax } from "./bounds.ts"
import { fieldOf, type Row } from "./row.ts"
import { comparableOf, compareWith, type Texts, ValueSet } from "./value.ts"

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

/** JSON where it is JSON, else the text itself. */
export const jsonOrText = (text: string): unknown => {
  const parsed = parseJson(text)
  return typeof parsed === "string" ? text : parsed.json
}

/** A number from 0 to 2^63, bare or quoted; undefined when the value is none. */
export const numberOf = (value: unknown): number | undefined => {
  const number = typeof value === "string" && /^\d{1,19}$/.test(value) ? Number(value) : value
  return typeof number === "number" && number >= 0 && number <= 2 ** 63 ? number : undefined
}

/** Milliseconds since the epoch, as a number or as the quoted text of an ETag, else undefined. */
export const timestampOf = (value: unknown): number | undefined => {
  const number = numberOf(value)
  return Number.isInteger(number) ? number : undefined
}

/** What is wrong with a filter whose value is read; undefined when nothing is. */
const valueError = ({ field, operator, value }: Filter): string | undefined => {
  const values = operator === "in" || operator === "exclude" ? (value as Array<unknown>) : [value]
  if (values.length > valuesMax) return `Must not have more than ${valuesMax} values`
  switch (operator) {
    case "has":
      return typeof value === "boolean" ? undefined : "Must be true or false"
    case "contains":
    case "contains_any":
      return field === "id" || field === "last_modified" ? "Is not an array" : undefined
    case "like":
      if (typeof value !== "string") return "Must be a string"
      if (value.length > patternCharsMax)
        return `Must not have more than ${patternCharsMax} characters`
  }
  if (field === "last_modified" && values.some((each) => timestampOf(each) === undefined))
    return "Must be a timestamp"
  const isList = operator === "in" || operator === "exclude"
  return field === "id" && isList && values.some((each) => typeof each !== "string")
    ? "Must be a list of strings"
    : undefined
}

/** The filter behind a query parameter, or what is wrong with it. */
export const readFilter = (name: string, text: string): Filter | ErrorDetail => {
  const error = (description: string): ErrorDetail => ({
    location: "querystring",
    name,
    description
  })
  if (name.includes("\0") || text.includes("\0")) return error("Must not contain null characters")
  const [, prefix, target] = prefixed.exec(name) ?? []
  const operator = (prefix as Operator | undefined) ?? "equal"
  const field = target ?? name
  const wrongName = nameError(field)
  if (wrongName !== undefined) return error(wrongName)
  const isList = operator === "in" || operator === "exclude"
  const read = isList ? text.split(",").map(jsonOrText) : jsonOrText(text)
  const wrongValue = valueError({ field, operator, value: read })
  if (wrongValue !== undefined) return error(wrongValue)
  if (operator === "contains" || operator === "contains_any")
    return { field, operator, value: Array.isArray(read) ? read : [read] }
  if (field !== "last_modified" || operator === "has" || operator === "like")
    return { field, operator, value: read }
  const value = Array.isArray(read) ? read.map(timestampOf) : timestampOf(read)
  return { field, operator, value }
}

/**
 * A test for a case-insensitive substring. `*` stands for anything, and then both ends of the
 * pattern are those of the text. Everything else is literal.
 */
const likeOf = (pattern: string): ((found: unknown) => boolean) => {
  const wanted = pattern.toLowerCase()
  const parts = wanted.split("*")
  const [head = "", ...rest] = parts
  const tail = rest.pop() ?? ""
  return (found) => {
    if (typeof found !== "string") return false
    const subject = found.toLowerCase()
    if (parts.length === 1) return subject.includes(wanted)
    if (!subject.startsWith(head)) return false
    let from = head.length
    for (const part of rest) {
      const at = subject.indexOf(part, from)
      if (at === -1) return false
      from = at + part.length
    }
    return subject.length - tail.length >= from && subject.endsWith(tail)
  }
}

const equalTo = (value: unknown, texts: Texts): ((found: unknown) => boolean) => {
  const wanted = new ValueSet([value])
  return (found) => found !== undefined && wanted.has(found, texts)
}

/** What a value of the field must be. */
const testOf = ({ operator, value }: Filter, texts: Texts): ((found: unknown) => boolean) => {
  const list = (): ValueSet => new ValueSet(Array.isArray(value) ? value : [value])
  const order = (accepts: (order: number) => boolean) => {
    const bound = comparableOf(value, texts)
    return (found: unknown) => accepts(compareWith(found, bound, texts))
  }
  const negated = (holds: (found: unknown) => boolean) => (found: unknown) => !holds(found)
  const within = () => {
    const set = list()
    return (found: unknown) => found !== undefined && set.has(found, texts)
  }
  switch (operator) {
    case "equal":
      return equalTo(value, texts)
    case "not":
      return negated(equalTo(value, texts))
    case "lt":
      return order((each) => each < 0)
    case "gt":
      return order((each) => each > 0)
    case "min":
      return order((each) => each >= 0)
    case "max":
      return order((each) => each <= 0)
    case "in":
      return within()
    case "exclude":
      return negated(within())
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

/** Whether an object passes. The filter's value is read once, whatever the number of objects. */
export const matcherOf = (filter: Filter, texts: Texts): ((row: Row) => boolean) => {
  const holds = testOf(filter, texts)
  return (row) => holds(fieldOf(row, filter.field))
}
