// Filters over list fields: `min_age=3`, `in_id=a,b`, `has_expirationTime=true`. Pure.

import { parseJson } from "#domain/json.ts"
import type { Fault } from "../faults.ts"
import { canonical, comparableOf, compare, type JsonObject, valueAt } from "./value.ts"

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

/** Milliseconds since the epoch, as a number or as the quoted text of an ETag; undefined when it is neither. */
export const timestampOf = (value: unknown): number | undefined => {
  const number = typeof value === "string" && /^\d{1,19}$/.test(value) ? Number(value) : value
  return typeof number === "number" && number >= 0 && number <= 2 ** 63
    ? Math.trunc(number)
    : undefined
}

/** The filter behind a query parameter, or what is wrong with it. */
export const readFilter = (name: string, text: string): Filter | Fault => {
  const fault = (description: string): Fault => ({ location: "querystring", name, description })
  if (name.includes("\0") || text.includes("\0")) return fault("Must not contain null characters")
  const [, prefix, target] = prefixed.exec(name) ?? []
  const operator = (prefix as Operator | undefined) ?? "equal"
  const field = target ?? name
  const several = operator === "in" || operator === "exclude"
  let value = several ? text.split(",").map(jsonOrText) : jsonOrText(text)
  if (operator === "has")
    return typeof value === "boolean" ? { field, operator, value } : fault("Must be true or false")
  if (operator === "contains" || operator === "contains_any") {
    if (field === "id" || field === "last_modified") return fault("Is not an array")
    return { field, operator, value: Array.isArray(value) ? value : [value] }
  }
  if (operator === "like" && typeof value !== "string") return fault("Must be a string")
  if (field === "last_modified" && operator !== "like") {
    const stamps = (several ? (value as ReadonlyArray<unknown>) : [value]).map(timestampOf)
    if (stamps.includes(undefined)) return fault("Must be a timestamp")
    value = several ? stamps : stamps[0]
  }
  if (
    field === "id" &&
    several &&
    !(value as ReadonlyArray<unknown>).every((item) => typeof item === "string")
  ) {
    return fault("Must be a list of strings")
  }
  return { field, operator, value }
}

/** A case-insensitive substring; `*` stands for anything and then both ends count. Everything else is literal. */
const like = (text: unknown, pattern: string): boolean => {
  if (typeof text !== "string") return false
  const [subject, wanted] = [text.toLowerCase(), pattern.toLowerCase()]
  if (!wanted.includes("*")) return subject.includes(wanted)
  const parts = wanted.split("*")
  const head = parts[0]!
  const tail = parts.at(-1)!
  if (!subject.startsWith(head)) return false
  let from = head.length
  for (const part of parts.slice(1, -1)) {
    const found = subject.indexOf(part, from)
    if (found === -1) return false
    from = found + part.length
  }
  return subject.length - tail.length >= from && subject.endsWith(tail)
}

/** What a value of the field must be. */
const test = ({ operator, value }: Filter): ((found: unknown) => boolean) => {
  const list = (Array.isArray(value) ? value : [value]).map(canonical)
  const [wanted, set, bound] = [canonical(value), new Set(list), comparableOf(value)]
  switch (operator) {
    case "equal":
      return (found) => found !== undefined && canonical(found) === wanted
    case "not":
      return (found) => found === undefined || canonical(found) !== wanted
    case "lt":
      return (found) => compare(comparableOf(found), bound) < 0
    case "gt":
      return (found) => compare(comparableOf(found), bound) > 0
    case "min":
      return (found) => compare(comparableOf(found), bound) >= 0
    case "max":
      return (found) => compare(comparableOf(found), bound) <= 0
    case "in":
      return (found) => found !== undefined && set.has(canonical(found))
    case "exclude":
      return (found) => found === undefined || !set.has(canonical(found))
    case "like":
      return (found) => like(found, value as string)
    case "has":
      return (found) => (found !== undefined) === value
    case "contains":
      return (found) => {
        const held = new Set(Array.isArray(found) ? found.map(canonical) : [])
        return Array.isArray(found) && list.every((text) => held.has(text))
      }
    case "contains_any":
      return (found) => Array.isArray(found) && found.some((each) => set.has(canonical(each)))
  }
}

/** Whether an object passes. What is asked for is read once, whatever the number of objects. */
export const matcherOf = (filter: Filter): ((object: JsonObject) => boolean) => {
  const holds = test(filter)
  return (object) => holds(valueAt(object, filter.field))
}
