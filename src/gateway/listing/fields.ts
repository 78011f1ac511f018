// Projection: `_fields=endpoint,keys.auth`. Pure.
import { isObject, type JsonObject } from "./value.ts"

/** Which object this is, when it changed, and whether it is a tombstone is never left out. */
const always = ["id", "last_modified", "deleted"]

export const readFields = (text: string): ReadonlyArray<string> =>
  text
    .split(",")
    .map((field) => field.trim())
    .filter((field) => field !== "")

const copy = (from: JsonObject, to: Record<string, unknown>, field: string): void => {
  if (Object.hasOwn(from, field)) {
    to[field] = from[field]
    return
  }
  const dot = field.indexOf(".")
  const head = field.slice(0, dot)
  if (dot === -1 || !Object.hasOwn(from, head) || !isObject(from[head])) return
  const inner = Object.hasOwn(to, head) && isObject(to[head]) ? { ...to[head] } : {}
  copy(from[head], inner, field.slice(dot + 1))
  if (Object.keys(inner).length > 0) to[head] = inner
}

export const project = (
  object: JsonObject,
  fields: ReadonlyArray<string> | undefined
): JsonObject => {
  if (fields === undefined) return object
  const projected: Record<string, unknown> = {}
  for (const field of [...fields, ...always]) copy(object, projected, field)
  return projected
}
