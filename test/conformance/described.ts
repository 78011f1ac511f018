// What a server says of itself: every answer to an operation that its description has must be one that the description tells, and what is
// answered with success must have been described, too.
import { expect } from "vitest"
import type { Request } from "./api.ts"
import { type Answer, exchange } from "./http.ts"

export type Schema = Readonly<Record<string, unknown>>

type Content = Readonly<Record<string, { readonly schema: Schema }>>

interface Told {
  readonly description: string
  readonly headers?: Readonly<
    Record<string, { readonly required: boolean; readonly schema: { readonly type: string } }>
  >
  readonly content?: Content
}

interface Described {
  readonly requestBody?: { readonly content: Content }
  readonly responses: Readonly<Record<string, Told>>
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>
  readonly components: { readonly schemas: { readonly Error: Schema } }
}

const types: Readonly<Record<string, (value: unknown) => boolean>> = {
  object: (value) => typeof value === "object" && value !== null && !Array.isArray(value),
  array: Array.isArray,
  string: (value) => typeof value === "string",
  integer: Number.isInteger,
  boolean: (value) => typeof value === "boolean",
  null: (value) => value === null
}

/** Where a value does not fit a schema; enough of JSON Schema for the description. */
const misfit = (value: unknown, schema: Schema, at = "$"): string | undefined => {
  const union = (schema["anyOf"] ?? schema["oneOf"]) as ReadonlyArray<Schema> | undefined
  if (union !== undefined)
    return union.some((each) => misfit(value, each) === undefined) ? undefined : `${at} fits none`
  if (Array.isArray(schema["enum"]))
    return schema["enum"].includes(value) ? undefined : `${at} is ${value}`
  const names = [schema["type"] ?? []].flat() as unknown as ReadonlyArray<string>
  if (names.length > 0 && !names.some((name) => types[name]?.(value))) return `${at} is no ${names}`
  if (types["array"]?.(value)) {
    return (value as ReadonlyArray<unknown>)
      .map((each, i) => misfit(each, (schema["items"] ?? {}) as Schema, `${at}.${i}`))
      .find(Boolean)
  }
  if (!types["object"]?.(value)) return undefined
  const object = value as Record<string, unknown>
  const missing = ((schema["required"] ?? []) as ReadonlyArray<string>).find(
    (name) => !Object.hasOwn(object, name)
  )
  if (missing !== undefined) return `${at}.${missing} is missing`
  const properties = (schema["properties"] ?? {}) as Record<string, Schema>
  const stranger = Object.keys(object).find(
    (name) => schema["additionalProperties"] === false && !Object.hasOwn(properties, name)
  )
  if (stranger !== undefined) return `${at}.${stranger} is not described`
  return Object.keys(properties)
    .filter((name) => Object.hasOwn(object, name))
    .map((name) => misfit(object[name], properties[name]!, `${at}.${name}`))
    .find(Boolean)
}

/** A header that was promised and is missing or no number, or another media type. */
const wrongHeader = ({ headers }: Answer, told: Told): string | undefined => {
  const media = headers["content-type"]?.split(";")[0]
  if (media !== undefined && !Object.hasOwn(told.content ?? {}, media))
    return `${media} is not described`
  if (media === undefined && told.content !== undefined) return "no Content-Type"
  return Object.entries(told.headers ?? {})
    .filter(([name, { required, schema }]) => {
      const value = headers[name.toLowerCase()]
      return value === undefined
        ? required
        : schema.type === "integer" && !/^\d+$/.test(String(value))
    })
    .map(([name]) => `${name}: ${headers[name.toLowerCase()]}`)[0]
}

/** What the description does not tell of an answer. */
export const undescribed = (
  answer: Answer,
  { responses }: Described,
  method: string,
  errorSchema: Schema
): string | undefined => {
  const told = responses[answer.status]
  if (told === undefined) return `${answer.status} is not described`
  const media = answer.headers["content-type"]?.split(";")[0] ?? ""
  const schema = told.content?.[media]?.schema
  if (method === "HEAD" || schema === undefined) return wrongHeader(answer, told)
  const value = media === "application/json" ? answer.json : answer.text
  return (
    wrongHeader(answer, told) ?? misfit(value, schema["$ref"] === undefined ? schema : errorSchema)
  )
}

const known = new Map<string, Promise<Document | undefined>>()

/** Undefined where there is no description: of another version, or of a service that has ended. */
const documentOf = (origin: string): Promise<Document | undefined> => {
  const asked =
    known.get(origin) ??
    exchange(origin, { method: "GET", target: "/v1/__api__" }).then(({ json }) => json)
  known.set(origin, asked)
  return asked
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

/** Methods that are switched off answer 405; what the description tells of every operation at once is in its words. */
export const checkDescribed = async (
  origin: string,
  answer: Answer,
  { body, method, path, target }: Request
): Promise<void> => {
  const { json, status } = answer
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
  const told = `${method} ${below}: ${status}`
  expect(
    undescribed(answer, operation, method, document!.components.schemas.Error),
    told
  ).toBeUndefined()
  if (status >= 400 && json?.errno !== undefined)
    expect(operation.responses[status]!.description).toContain(`errno ${json.errno} `)
  const taken = operation.requestBody?.content["application/json"]?.schema
  const sent = status < 300 && taken !== undefined ? jsonOf(body) : undefined
  if (sent !== undefined) expect(misfit(sent, taken!), `${told}, what was sent`).toBeUndefined()
}
