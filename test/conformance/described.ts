// Checks responses by the API description of the server: the description must have every status,
// header and body of an operation, and every accepted request body.
import { expect } from "vitest"
import { isObject, type JsonObject as Json } from "#basics/json.ts"
import type { Request } from "./api.ts"
import { exchange, type HttpResponse } from "./http.ts"

export type Schema = Readonly<Record<string, unknown>>

type Content = Readonly<Record<string, { readonly schema: Schema }>>

interface ResponseDescription {
  readonly description: string
  readonly headers?: Readonly<
    Record<string, { readonly required: boolean; readonly schema: { readonly type: string } }>
  >
  readonly content?: Content
}

interface Described {
  readonly requestBody?: { readonly content: Content }
  readonly responses: Readonly<Record<string, ResponseDescription>>
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>
}

const types: Readonly<Record<string, (value: unknown) => boolean>> = {
  object: isObject,
  array: Array.isArray,
  string: (value) => typeof value === "string",
  integer: Number.isInteger,
  number: (value) => typeof value === "number",
  boolean: (value) => typeof value === "boolean",
  null: (value) => value === null
}

/** A description with each reference replaced by what it names. None names itself. */
export const withoutRefs = (whole: Json, part: unknown = whole): unknown => {
  if (Array.isArray(part)) return part.map((each) => withoutRefs(whole, each))
  if (!isObject(part)) return part
  const { $ref } = part
  if (typeof $ref === "string") {
    const path = $ref.split("/").slice(1)
    return withoutRefs(
      whole,
      path.reduce<unknown>((at, name) => (at as Json)[name], whole)
    )
  }
  return Object.fromEntries(
    Object.entries(part).map(([name, each]) => [name, withoutRefs(whole, each)])
  )
}

/** The first place where an object does not match the schema of its members. */
const objectMismatch = (object: object, schema: Schema, at: string): string | undefined => {
  const missing = ((schema["required"] ?? []) as ReadonlyArray<string>).find(
    (name) => !Object.hasOwn(object, name)
  )
  if (missing !== undefined) return `${at}.${missing} is missing`
  const properties = (schema["properties"] ?? {}) as Record<string, Schema>
  const unknown = Object.keys(object).find(
    (name) => schema["additionalProperties"] === false && !Object.hasOwn(properties, name)
  )
  if (unknown !== undefined) return `${at}.${unknown} is not described`
  const members = object as Readonly<Record<string, unknown>>
  return Object.keys(properties)
    .filter((name) => Object.hasOwn(object, name))
    .map((name) => mismatch(members[name], properties[name]!, `${at}.${name}`))
    .find(Boolean)
}

/** The first place where a value does not match a schema. Covers what the description uses. */
const mismatch = (value: unknown, schema: Schema, at = "$"): string | undefined => {
  const other = schema["not"] as Schema | undefined
  if (other !== undefined && mismatch(value, other) === undefined) return `${at} is excluded`
  if (schema["const"] !== undefined && schema["const"] !== value) return `${at} is ${value}`
  const union = (schema["anyOf"] ?? schema["oneOf"]) as ReadonlyArray<Schema> | undefined
  if (union !== undefined)
    return union.some((each) => mismatch(value, each) === undefined) ? undefined : `${at} fits none`
  if (Array.isArray(schema["enum"]))
    return schema["enum"].includes(value) ? undefined : `${at} is ${value}`
  const names = [schema["type"] ?? []].flat() as unknown as ReadonlyArray<string>
  if (names.length > 0 && !names.some((name) => types[name]?.(value))) return `${at} is no ${names}`
  if (Array.isArray(value)) {
    return value
      .map((each, i) => mismatch(each, (schema["items"] ?? {}) as Schema, `${at}.${i}`))
      .find(Boolean)
  }
  const parts = (schema["allOf"] ?? []) as ReadonlyArray<Schema>
  const part = parts.map((each) => mismatch(value, each, at)).find(Boolean)
  if (part !== undefined) return part
  return typeof value === "object" && value !== null ? objectMismatch(value, schema, at) : undefined
}

/** A described header that is missing or not a number, or a media type that is not described. */
const headerError = (
  { headers }: HttpResponse,
  description: ResponseDescription
): string | undefined => {
  const media = headers["content-type"]?.split(";")[0]
  if (media !== undefined && !Object.hasOwn(description.content ?? {}, media))
    return `${media} is not described`
  if (media === undefined && description.content !== undefined) return "no Content-Type"
  return Object.entries(description.headers ?? {})
    .filter(([name, { required, schema }]) => {
      const value = headers[name.toLowerCase()]
      return value === undefined
        ? required
        : schema.type === "integer" && !/^\d+$/.test(String(value))
    })
    .map(([name]) => `${name}: ${headers[name.toLowerCase()]}`)[0]
}

/** The first thing in a response that the description does not have. */
export const undescribed = (
  response: HttpResponse,
  { responses }: Described,
  method: string
): string | undefined => {
  const description = responses[response.status]
  if (description === undefined) return `${response.status} is not described`
  const media = response.headers["content-type"]?.split(";")[0] ?? ""
  const schema = description.content?.[media]?.schema
  if (method === "HEAD" || schema === undefined) return headerError(response, description)
  const value = media === "application/json" ? response.json : response.text
  return headerError(response, description) ?? mismatch(value, schema)
}

const known = new Map<string, Promise<Document | undefined>>()

/** The description; undefined for another version, and after the end of service. */
const documentOf = (origin: string): Promise<Document | undefined> => {
  const document =
    known.get(origin) ??
    exchange(origin, { method: "GET", target: "/v1/__api__" }).then(
      ({ json }) => withoutRefs(json as Json) as Document | undefined
    )
  known.set(origin, document)
  return document
}

const fits = (template: string, path: string): boolean => {
  const [parts, segments] = [template.split("/"), path.split("/")]
  return (
    parts.length === segments.length &&
    parts.every((part, i) => (part.startsWith("{") ? segments[i] !== "" : part === segments[i]))
  )
}

const jsonOf = (body: unknown): unknown => {
  const text =
    typeof body === "string" || Buffer.isBuffer(body) ? String(body) : JSON.stringify(body)
  return text === undefined || text === "" ? undefined : JSON.parse(text)
}

/** Checks a response and its request. Skips 405, which the description does not list. */
export const checkDescribed = async (
  origin: string,
  response: HttpResponse,
  { body, method, path, target }: Request
): Promise<void> => {
  const { status } = response
  const below =
    target === undefined
      ? (path ?? "/")
      : target.startsWith("/v1/")
        ? target.slice("/v1".length)
        : undefined
  if (below === undefined || status === 405) return
  const document = await documentOf(origin)
  const [, item] =
    Object.entries(document?.paths ?? {}).find(([template]) =>
      fits(template, below.split("?")[0]!)
    ) ?? []
  const operation = item?.[(method === "HEAD" ? "GET" : method).toLowerCase()]
  if (operation === undefined) return
  const about = `${method} ${below}: ${status}`
  expect(undescribed(response, operation, method), about).toBeUndefined()
  const bodySchema = operation.requestBody?.content["application/json"]?.schema
  const accepted = status < 300 && bodySchema !== undefined ? jsonOf(body) : undefined
  if (accepted !== undefined)
    expect(mismatch(accepted, bodySchema!), `${about}, request body`).toBeUndefined()
}
