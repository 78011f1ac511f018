// Values of JSON objects as filters and sorting see them: nested fields, an order over all types, equality. Pure.

export type JsonObject = Readonly<Record<string, unknown>>

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/**
 * Keys may hold dots, so each dot is a place where a key may end: a name of 15,000 characters had a list of 50 objects looked through for 8 s.
 * Nobody's names are as long as this.
 */
const pathCharsMax = 128

/** The field as it is named, or reached through its dots; undefined when it is missing. */
export const valueAt = (object: unknown, field: string): unknown => {
  if (!isObject(object)) return undefined
  if (Object.hasOwn(object, field)) return object[field]
  if (field.length > pathCharsMax) return undefined
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
  if (value === undefined) return 6
  if (value === null) return 0
  if (Array.isArray(value)) return 4
  return { string: 1, number: 2, boolean: 3 }[typeof value as "string"] ?? 5
}

/** One text for equal values, whatever the order of their keys. */
export const canonical = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`
  if (!isObject(value)) return JSON.stringify(value)
  return `{${Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`)
    .join()}}`
}

/** What a value is compared by. To be made once for each value, not for each comparison: of a large object it is a long text. */
export interface Comparable {
  readonly rank: number
  readonly by: string | number | boolean
}

export const comparableOf = (value: unknown): Comparable => {
  const rank = rankOf(value)
  if (rank === 0 || rank === 6) return { rank, by: 0 }
  return { rank, by: rank < 4 ? (value as string | number | boolean) : canonical(value) }
}

export const compare = (a: Comparable, b: Comparable): number =>
  a.rank === b.rank ? (a.by < b.by ? -1 : a.by > b.by ? 1 : 0) : a.rank - b.rank
