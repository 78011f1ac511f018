// JSON values for filters and sorting: nested fields, equality, and an order over all types. Pure.
import { canonicalJson, isObject } from "#basics/json.ts"

/**
 * The value of a field, also of a dotted one; undefined when missing. A key may contain dots, so a
 * key may end at each dot of `field`: the caller limits their number.
 */
export const valueAt = (object: unknown, field: string): unknown => {
  if (!isObject(object)) return undefined
  if (Object.hasOwn(object, field)) return object[field]
  for (let dot = field.indexOf("."); dot !== -1; dot = field.indexOf(".", dot + 1)) {
    const head = field.slice(0, dot)
    if (!Object.hasOwn(object, head)) continue
    const found = valueAt(object[head], field.slice(dot + 1))
    if (found !== undefined) return found
  }
  return undefined
}

/** null < string < number < boolean < array < object < missing */
const rankOf = (value: unknown): number => {
  switch (typeof value) {
    case "undefined":
      return 6
    case "string":
      return 1
    case "number":
      return 2
    case "boolean":
      return 3
    default:
      return value === null ? 0 : Array.isArray(value) ? 4 : 5
  }
}

/** The canonical texts of one request's values: several filters may need that of a large value. */
export type Texts = WeakMap<object, string>

/** A text that is the same for equal values, whatever the order of their keys. */
export const canonical = (value: unknown, texts?: Texts): string => {
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  if (texts === undefined) return canonicalJson(value)
  const known = texts.get(value)
  if (known !== undefined) return known
  const text = canonicalJson(value)
  texts.set(value, text)
  return text
}

/** A set of JSON values. Looks scalars up without serialising them. */
export class ValueSet {
  readonly #scalars = new Set<unknown>()
  readonly #texts = new Set<string>()

  constructor(values: ReadonlyArray<unknown>) {
    for (const value of values)
      if (typeof value === "object" && value !== null) this.#texts.add(canonical(value))
      else this.#scalars.add(value)
  }

  has(value: unknown, texts?: Texts): boolean {
    if (typeof value !== "object" || value === null) return this.#scalars.has(value)
    return this.#texts.size > 0 && this.#texts.has(canonical(value, texts))
  }

  /** Whether `values` include every value of the set. */
  isWithin(values: ReadonlyArray<unknown>): boolean {
    const scalars = new Set<unknown>()
    const texts = new Set<string>()
    for (const value of values)
      if (typeof value === "object" && value !== null) {
        const text = this.#texts.size === 0 ? "" : canonical(value)
        if (this.#texts.has(text)) texts.add(text)
      } else if (this.#scalars.has(value)) scalars.add(value)
    return scalars.size === this.#scalars.size && texts.size === this.#texts.size
  }
}

/** The sort key of a value. Compute it once: that of a large object is a long text. */
export interface Comparable {
  readonly rank: number
  readonly by: string | number | boolean
}

export const comparableOf = (value: unknown, texts: Texts): Comparable => {
  const rank = rankOf(value)
  if (rank === 0 || rank === 6) return { rank, by: 0 }
  return { rank, by: rank < 4 ? (value as string | number | boolean) : canonical(value, texts) }
}

export const compare = (a: Comparable, b: Comparable): number =>
  a.rank === b.rank ? (a.by < b.by ? -1 : a.by > b.by ? 1 : 0) : a.rank - b.rank

/** As {@link compare}, but does not serialise a value of another type than the bound. */
export const compareWith = (value: unknown, bound: Comparable, texts: Texts): number => {
  const rank = rankOf(value)
  return rank === bound.rank ? compare(comparableOf(value, texts), bound) : rank - bound.rank
}
