// Makes the OpenAPI 3.1 description from the table of endpoints, the schemas of the validation, and
// the table of errors. Pure.
import * as Schema from "effect/Schema"
import { isObject } from "#basics/json.ts"
import { OtherData, Push } from "#browser/push.ts"
import { apiErrors, type ErrorCode } from "../http/error-table.ts"
import { ErrorDetail } from "../http/response.ts"
import type { AnyOperation, Description, Endpoint } from "../operation.ts"
import { groups } from "./groups.ts"
import { headersOf, parameterGroups, pathParameters } from "./parameters.ts"

type Json = Readonly<Record<string, unknown>>

/** The scheme of each policy in the terms of OpenAPI, by the policy's name. */
export type SecuritySchemes = Readonly<
  Record<string, { readonly type: "http"; readonly scheme: string }>
>

/** The parts of the description that differ by server. */
export interface About {
  readonly title: string
  readonly version: string
  readonly rootUrl: string
  readonly schemes: SecuritySchemes
}

const finePrint = [
  "HEAD works wherever GET does, OPTIONS everywhere; other methods answer 405 with Allow.",
  "Paths without a version, or with a slash at their end, answer 307 with Location.",
  "Timestamps are milliseconds since the epoch, unique and increasing per user.",
  "A page of another site must send Content-Type: application/json with every POST, PUT,",
  "PATCH and DELETE, with a body or without.",
  "A request may name its user in If-User, by the id of GET /, percent-encoded: 412 if another",
  "user sends it.",
  "The endpoint in the examples is below .example, where no push service can be: it is",
  "refused with 400. Send what the browser gave you."
]

const codes = Object.keys(apiErrors) as Array<ErrorCode>
const codesOf = (status: number) => codes.filter((code) => apiErrors[code].status === status)

/** Those of responses that the description lists. 405 is to the methods that it does not list. */
const statuses = [...new Set(codes.map((code) => apiErrors[code].status))].filter(
  (status) => status !== 405
)
const errorName = (status: number): string => `Error${status}`

export const openApiOf = (endpoints: ReadonlyArray<Endpoint>, about: About): Json => {
  const schemas = makeSchemas()
  for (const status of statuses) schemas.add(errorName(status), errorSchema(status, schemas))
  const paths = Object.fromEntries(
    endpoints.map((endpoint) => [
      endpoint.path.replace(/:(\w+)/g, "{$1}"),
      pathItem(endpoint, about.schemes, schemas)
    ])
  )
  return {
    openapi: "3.1.0",
    info: {
      title: about.title,
      version: about.version,
      license: { name: "MIT", identifier: "MIT" },
      description: finePrint.join(" ")
    },
    servers: [{ url: about.rootUrl }],
    tags: groups.map(({ description, name }) => ({ name, description })),
    paths,
    components: { schemas: schemas.named(), securitySchemes: about.schemes }
  }
}

const pathItem = (endpoint: Endpoint, schemes: SecuritySchemes, schemas: Schemas): Json => {
  const names = [...endpoint.path.matchAll(/:(\w+)/g)].map(([, name]) => name!)
  const parameters = names.map((name) => ({
    in: "path",
    name,
    required: true,
    schema: pathParameters[name]
  }))
  return {
    ...(parameters.length === 0 ? {} : { parameters }),
    ...Object.fromEntries(
      Object.entries(endpoint.operations).map(([method, operation]) => [
        method.toLowerCase(),
        operationOf(endpoint, method, operation!, schemes, schemas)
      ])
    )
  }
}

const operationOf = (
  endpoint: Endpoint,
  method: string,
  operation: AnyOperation,
  schemes: SecuritySchemes,
  schemas: Schemas
): Json => {
  const { parameters = [], summary } = operation.doc
  const operationId = `${method.toLowerCase()}-${endpoint.name}`
  return {
    operationId,
    summary,
    tags: groups
      .filter(({ operations }) => operations.includes(operationId))
      .map(({ name }) => name),
    security: securityOf(operation, schemes),
    ...(parameters.length === 0
      ? {}
      : { parameters: parameters.flatMap((group) => parameterGroups[group] ?? []) }),
    ...bodyOf(operation.doc, schemas),
    responses: responsesOf(endpoint, operation, schemas)
  }
}

/** Callers of an operation in the terms of OpenAPI: an empty list is everybody, `{}` an unknown. */
const securityOf = ({ access }: AnyOperation, schemes: SecuritySchemes): ReadonlyArray<Json> => {
  const all = Object.keys(schemes).map((name) => ({ [name]: [] }))
  return access === "anyone" ? [] : access === "guest" ? [{}, ...all] : all
}

const bodyOf = ({ body, bodyExample, bodyRequired }: Description, schemas: Schemas): Json =>
  body === undefined
    ? {}
    : {
        requestBody: {
          required: bodyRequired ?? false,
          content: { "application/json": { schema: schemas.body(body), example: bodyExample } }
        }
      }

const reasons: Readonly<Record<number, string>> = {
  200: "OK",
  201: "Created",
  202: "Accepted",
  204: "There is nothing more: do not come back",
  302: "The browser goes on to Location",
  304: "Not modified",
  307: "The resource is elsewhere"
}

const responsesOf = (endpoint: Endpoint, operation: AnyOperation, schemas: Schemas): Json => {
  const responses: Record<string, unknown> = {}
  for (const status of errorStatuses(endpoint, operation)) {
    responses[status] = {
      description: describeError(status),
      ...headersOf(status),
      content: {
        "application/json": { schema: refTo(errorName(status)) }
      }
    }
  }
  const { responses: successes, textType } = operation.doc
  for (const [key, schema] of Object.entries(successes)) {
    const status = Number(key)
    const content = {
      ...(schema === null ? {} : { "application/json": { schema: schemas.response(schema) } }),
      ...(textType === undefined || status !== 200
        ? {}
        : { [textType]: { schema: { type: "string" } } })
    }
    responses[status] = {
      description: reasons[status] ?? describeError(status),
      ...headersOf(status, operation.exposes),
      ...(Object.keys(content).length === 0 ? {} : { content })
    }
  }
  return responses
}

const errorStatuses = (
  endpoint: Endpoint,
  { access, doc, negotiates, takesJson }: AnyOperation
): ReadonlyArray<number> => [
  // An Origin that may not call, a URL that is not UTF-8.
  400,
  410,
  // A request that does not arrive, a head that is too large.
  408,
  431,
  // The limits of an address.
  429,
  500,
  503,
  ...(access === "anyone" || access === "guest" ? [] : [401]),
  // The user whom the request names.
  ...(access === "anyone" ? [] : [412]),
  ...(["publisher", "operator", "viewer", "users", "eraser"].includes(access) ? [403] : []),
  // A slash in a named segment.
  ...(endpoint.path.includes("/:") ? [404] : []),
  ...(negotiates ? [406] : []),
  ...(takesJson === undefined ? [] : [413, 415]),
  ...(doc.errors ?? [])
]

const describeError = (status: number): string => codesOf(status).join(", ")

/** The form of all errors of one status. */
const errorSchema = (status: number, schemas: Schemas): Json => ({
  type: "object",
  properties: {
    code: { type: "integer", enum: [status], description: "The HTTP status" },
    errno: {
      type: "integer",
      enum: [...new Set(codesOf(status).map((code) => apiErrors[code].errno))],
      description: "As in the protocol of Kinto: several errors share one"
    },
    error_code: { type: "string", enum: codesOf(status), description: "Decide by it" },
    error: { type: "string" },
    message: { type: "string", description: "For people: it may change" },
    info: { type: "string" },
    details: detailsOf(status, schemas)
  },
  required: ["code", "errno", "error_code", "error"]
})

/** The details of errors of a status (contract 2.3). */
const detailsOf = (status: number, schemas: Schemas): Json => {
  if ([400, 406, 415].includes(status)) return schemas.response(Schema.Array(ErrorDetail))
  return { type: "object", additionalProperties: true }
}

type Schemas = ReturnType<typeof makeSchemas>

const schemaPath = "#/components/schemas/"
const refTo = (name: string): Json => ({ $ref: schemaPath + name })

/**
 * The JSON Schemas of one description, in the form that generators of clients understand: those
 * with a name (`identifier`) once, each number an integer or a finite number, and no part that says
 * nothing.
 */
const makeSchemas = () => {
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
