// JSON Schemas of bodies and responses, in the form that generators of clients understand: named
// schemas once, each number an integer or a finite number, and no part that says nothing. Pure.
import * as Schema from "effect/Schema"
import { isObject } from "#basics/json.ts"
import { OtherData, Push } from "#browser/push.ts"

export type Json = Readonly<Record<string, unknown>>

const schemaPath = "#/components/schemas/"
export const refTo = (name: string): Json => ({ $ref: schemaPath + name })

/** The parts of `allOf` as members of the schema itself, where no member is in two of them. */
const merged = ({ allOf, ...own }: Json): Json => {
  if (!Array.isArray(allOf)) return own
  const parts: ReadonlyArray<Json> = [own, ...allOf]
  const names = parts.flatMap((part) =>
    Object.keys(part).filter((name) => name !== "type" || part === own)
  )
  return new Set(names).size === names.length ? Object.assign({}, ...parts) : { ...own, allOf }
}

/** A union of one is that one; a union has no type of its own. */
const unionOf = (schema: Json): Json => {
  const { anyOf, type, ...others } = schema
  if (!Array.isArray(anyOf)) return schema
  return anyOf.length === 1 ? { ...anyOf[0], ...others } : { anyOf, ...others }
}

const isWhole = (value: unknown) => Number.isInteger(value)
const bounds = [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]

/** A member of a schema that a reader needs; undefined for one that says nothing. */
const memberOf = (schema: Json, name: string, value: unknown): unknown => {
  switch (name) {
    case "minimum":
    case "maximum":
      return bounds.includes(value as number) ? undefined : value
    // `true` is what any object allows, `{}` that there are members of any name.
    case "additionalProperties":
      return value === true
        ? undefined
        : (isObject(value) && Object.keys(value).length === 0) || tidy(value)
    case "type":
      return Array.isArray(schema["enum"]) && schema["enum"].every(isWhole) ? "integer" : value
    case "$ref":
      return String(value).replace("#/$defs/", schemaPath)
    case "properties":
      return Object.fromEntries(
        Object.entries(value as Json).map(([key, each]) => [key, tidy(each)])
      )
    default:
      return tidy(value)
  }
}

const tidy = (json: unknown): unknown => {
  if (Array.isArray(json)) return json.map(tidy)
  if (!isObject(json)) return json
  const schema = unionOf(merged(json))
  return Object.fromEntries(
    Object.entries(schema)
      .map(([name, value]) => [name, memberOf(schema, name, value)] as const)
      .filter(([, value]) => value !== undefined)
  )
}

/** The schemas of one description, which share those with a name (`identifier`). */
export const makeSchemas = () => {
  const named: Record<string, Json> = {}
  const add = (name: string, schema: Json): Json => {
    const known = named[name] ?? schema
    if (JSON.stringify(known) !== JSON.stringify(schema)) throw new Error(`two schemas ${name}`)
    named[name] = schema
    return refTo(name)
  }
  const of = (schema: Schema.Top, onExcessProperty?: "error"): Json => {
    const made = Schema.toJsonSchemaDocument(schema, onExcessProperty && { onExcessProperty })
    for (const [name, each] of Object.entries(made.definitions)) add(name, tidy(each) as Json)
    return tidy(made.schema) as Json
  }
  // The data of a push refers to them by name.
  of(Push)
  add("OtherData", OtherData)
  return {
    add,
    /** That of a response: clients ignore members that they do not know. */
    response: (schema: Schema.Top) => of(schema),
    /** That of a request body: an unknown member is an error. */
    body: (schema: Schema.Top) => of(schema, "error"),
    named: (): Json =>
      Object.fromEntries(Object.entries(named).sort(([a], [b]) => (a < b ? -1 : 1)))
  }
}
