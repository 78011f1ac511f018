// The objects of a list, for filters, sorting and responses: their fields by name, and an order
// over all JSON values. Pure.
import { canonicalJson, isObject, type JsonObject } from "#basics/json.ts"
import type { SubscriptionList } from "#domain/subscription/subscription.ts"
import { removedAt } from "#domain/subscription/tombstone.ts"

/**
 * An object: the data of its owner and the fields of the server. The two stay apart because copying
 * 50 objects of 1,700 fields takes 50 ms.
 */
export interface Row {
  /** `id`, `last_modified`, and `deleted` of a tombstone. They replace fields of `data`. */
  readonly own: JsonObject
  readonly data: JsonObject
}

export const rowsOf = (list: SubscriptionList): ReadonlyArray<Row> =>
  Object.entries(list.subscriptions).map(([id, { data, lastModified }]) => ({
    own: { id, last_modified: lastModified },
    data
  }))

export const tombstoneRowsOf = (list: SubscriptionList): ReadonlyArray<Row> =>
  Object.entries(list.tombstones).map(([id, tombstone]) => ({
    own: { id, last_modified: removedAt(tombstone), deleted: true },
    data: {}
  }))

/** The value of a field; undefined when missing. */
export const fieldOf = ({ data, own }: Row, field: string): unknown =>
  Object.hasOwn(own, field) ? own[field] : memberAt(data, field)

/** Dotted names by their part before the first dot, without that part. */
const byHead = (names: ReadonlyArray<string>): ReadonlyMap<string, ReadonlyArray<string>> => {
  const heads = new Map<string, Array<string>>()
  for (const name of names) {
    const dot = name.indexOf(".")
    if (dot === -1) continue
    const rest = heads.get(name.slice(0, dot))
    if (rest === undefined) heads.set(name.slice(0, dot), [name.slice(dot + 1)])
    else rest.push(name.slice(dot + 1))
  }
  return heads
}

/** Copies the named fields that exist. Dotted names reach into nested objects. */
const copy = (from: JsonObject, to: Map<string, unknown>, names: ReadonlyArray<string>): void => {
  const direct = names.filter((name) => Object.hasOwn(from, name))
  for (const name of direct) to.set(name, from[name])
  const nested = byHead(names.filter((name) => !Object.hasOwn(from, name)))
  for (const [head, rest] of nested) {
    const found = Object.hasOwn(from, head) && !to.has(head) ? from[head] : undefined
    if (!isObject(found)) continue
    const part = new Map<string, unknown>()
    copy(found, part, rest)
    // Object.fromEntries defines properties: a field `__proto__` stays a field.
    if (part.size > 0) to.set(head, Object.fromEntries(part))
  }
}

/** An object with the fields that `_fields` names; undefined: all fields. */
export const project = (
  { data, own }: Row,
  fields: ReadonlyArray<string> | undefined
): JsonObject => {
  if (fields === undefined) return { ...data, ...own }
  const projected = new Map<string, unknown>()
  copy(data, projected, Object.hasOwn(own, "deleted") ? fields : [...fields, "deleted"])
  // `own` always stays: clients need the id, the timestamp and the mark of a tombstone.
  return { ...Object.fromEntries(projected), ...own }
}

/** The JSON text of {@link project}, where possible without a copy of the object. */
export const textOf = (row: Row, fields: ReadonlyArray<string> | undefined): string => {
  const { data, own } = row
  const isCopied = fields !== undefined || Object.keys(own).some((key) => Object.hasOwn(data, key))
  const text = JSON.stringify(isCopied ? project(row, fields) : data)
  if (isCopied) return text
  const rest = JSON.stringify(own)
  return text === "{}" ? rest : `${text.slice(0, -1)},${rest.slice(1)}`
}

/** Characters in the name of a parameter or field. The longest name in Bellcast has 19. */
export const nameCharsMax = 128

/** Parts of a dotted name. `keys.auth` has two. Each part may read the nested object again. */
const namePartsMax = 5

/** The error of a field's name; undefined for a valid name. */
export const nameError = (name: string): string | undefined => {
  if (name.length > nameCharsMax)
    return `A field's name must not have more than ${nameCharsMax} characters`
  return name.split(".").length > namePartsMax
    ? `A field's name must not have more than ${namePartsMax} parts`
    : undefined
}

/**
 * The value of a field, also of a dotted one; undefined when missing. A key may contain dots, so a
 * key may end at each dot of `field`: the caller limits their number.
 */
export const memberAt = (object: unknown, field: string): unknown => {
  if (!isObject(object)) return undefined
  if (Object.hasOwn(object, field)) return object[field]
  for (let dot = field.indexOf("."); dot !== -1; dot = field.indexOf(".", dot + 1)) {
    const head = field.slice(0, dot)
    if (!Object.hasOwn(object, head)) continue
    const found = memberAt(object[head], field.slice(dot + 1))
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
const canonical = (value: unknown, texts?: Texts): string => {
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
