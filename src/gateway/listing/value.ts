// Values of JSON objects as filters and sorting see them: nested fields, an order over all types, equality. Pure.

export type JsonObject = Readonly<Record<string, unknown>>

export const isObject = (value: unknown): value is JsonObject => typeof value === "object" && value !== null && !Array.isArray(value)

/** The field as it is named, or reached through its dots; undefined when it is missing. */
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
  if (value === undefined) return 6
  if (value === null) return 0
  if (Array.isArray(value)) return 4
  return { string: 1, number: 2, boolean: 3 }[typeof value as "string"] ?? 5
}

/** One text for equal values, whatever the order of their keys. */
const canonical = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`
  if (!isObject(value)) return JSON.stringify(value)
  return `{${Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`)
    .join()}}`
}

export const compareValues = (a: unknown, b: unknown): number => {
  const rank = rankOf(a)
  if (rank !== rankOf(b)) return rank - rankOf(b)
  if (rank === 0 || rank === 6) return 0
  const [left, right] = rank < 4 ? [a as string, b as string] : [canonical(a), canonical(b)]
  return left < right ? -1 : left > right ? 1 : 0
}

export const equal = (a: unknown, b: unknown): boolean => compareValues(a, b) === 0
