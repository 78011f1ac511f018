// Makes the OpenAPI 3.1 description from the table of endpoints, the schemas of the validation, and
// the table of errors. Pure.
import * as Schema from "effect/Schema"
import { apiErrors, type ErrorName, phraseOf } from "../http/error-table.ts"
import { ErrorDetail } from "../http/errors.ts"
import type { AnyOperation, Endpoint } from "../operation.ts"
import { headersOf } from "./headers.ts"
import { parameterGroups, pathParameters } from "./parameters.ts"

type Json = Readonly<Record<string, unknown>>

const reasons: Readonly<Record<number, string>> = {
  200: "OK",
  201: "Created",
  202: "Accepted",
  204: "There is nothing more: do not come back",
  302: "The browser goes on to Location",
  304: "Not modified",
  307: "The resource is elsewhere"
}

const errorRef = { $ref: "#/components/schemas/Error" }

/** The JSON Schema of a response, without references. */
const jsonSchema = (schema: Schema.Top): Json => Schema.toJsonSchemaDocument(schema).schema as Json
/** The JSON Schema of a request body: unknown keys are an error. */
const strictSchema = (schema: Schema.Top): Json =>
  Schema.toJsonSchemaDocument(schema, { onExcessProperty: "error" }).schema as Json

/** Integers, without the bounds that Schema.Int writes. */
const isInteger = Schema.isInt({ toJsonSchema: () => ({ type: "integer" }) })
const errnos = [...new Set(Object.values(apiErrors).map(({ errno }) => errno))]

const ErrorBody = Schema.Struct({
  code: Schema.Number.check(isInteger).annotate({ description: "The HTTP status" }),
  errno: Schema.Literals(errnos).check(isInteger),
  error: Schema.String,
  message: Schema.optionalKey(Schema.String),
  info: Schema.optionalKey(Schema.String),
  details: Schema.optionalKey(
    Schema.Union([Schema.Array(ErrorDetail), Schema.Record(Schema.String, Schema.Unknown)])
  )
})

const errorStatuses = (
  endpoint: Endpoint,
  { access, doc, negotiates, takesJson }: AnyOperation
): ReadonlyArray<number> => [
  // An Origin that may not call, a URL that is not UTF-8.
  400,
  410,
  // The limits of an address.
  429,
  500,
  503,
  ...(access === "anyone" || access === "guest" ? [] : [401]),
  ...(["publisher", "operator", "viewer", "users"].includes(access) ? [403] : []),
  // A slash in a named segment.
  ...(endpoint.path.includes("/:") ? [404] : []),
  ...(negotiates ? [406] : []),
  ...(takesJson === undefined ? [] : [413, 415]),
  ...(doc.errors ?? [])
]

const describeError = (status: number): string =>
  (Object.keys(apiErrors) as Array<ErrorName>)
    .filter((name) => apiErrors[name].code === status)
    .map((name) => `errno ${apiErrors[name].errno} ${phraseOf(apiErrors[name])}`)
    .filter((text, i, all) => all.indexOf(text) === i)
    .join("; ")

const responsesOf = (endpoint: Endpoint, operation: AnyOperation): Json => {
  const responses: Record<string, unknown> = {}
  for (const status of errorStatuses(endpoint, operation)) {
    responses[status] = {
      description: describeError(status),
      ...headersOf(status),
      content: { "application/json": { schema: errorRef } }
    }
  }
  const { responses: successes, textType } = operation.doc
  for (const [key, schema] of Object.entries(successes)) {
    const status = Number(key)
    const content = {
      ...(schema === null ? {} : { "application/json": { schema: jsonSchema(schema) } }),
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

/** The scheme of each policy in the terms of OpenAPI, by the policy's name. */
export type SecuritySchemes = Readonly<
  Record<string, { readonly type: "http"; readonly scheme: string }>
>

const operationOf = (
  endpoint: Endpoint,
  method: string,
  operation: AnyOperation,
  schemes: SecuritySchemes
): Json => {
  const { body, bodyExample, bodyRequired, parameters = [], summary } = operation.doc
  return {
    operationId: `${method.toLowerCase()}-${endpoint.name}`,
    summary,
    ...(operation.access === "anyone" || operation.access === "guest"
      ? {}
      : { security: Object.keys(schemes).map((name) => ({ [name]: [] })) }),
    ...(parameters.length === 0
      ? {}
      : { parameters: parameters.flatMap((group) => parameterGroups[group] ?? []) }),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: bodyRequired ?? false,
            content: { "application/json": { schema: strictSchema(body), example: bodyExample } }
          }
        }),
    responses: responsesOf(endpoint, operation)
  }
}

const pathItem = (endpoint: Endpoint, schemes: SecuritySchemes): Json => {
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
        operationOf(endpoint, method, operation!, schemes)
      ])
    )
  }
}

/** The parts of the description that differ by server. */
export interface About {
  readonly title: string
  readonly version: string
  readonly rootUrl: string
  readonly schemes: SecuritySchemes
}

export const openApiOf = (endpoints: ReadonlyArray<Endpoint>, about: About): Json => ({
  openapi: "3.1.0",
  info: {
    title: about.title,
    version: about.version,
    description: [
      "HEAD works wherever GET does, OPTIONS everywhere; other methods answer 405 with Allow.",
      "Paths without a version, or with a slash at their end, answer 307 with Location.",
      "Timestamps are milliseconds since the epoch, unique and increasing per user.",
      "A page of another site must send Content-Type: application/json with every POST, PUT,",
      "PATCH and DELETE, with a body or without.",
      "The endpoint in the examples is below .example, where no push service can be: it is",
      "refused with 400. Send what the browser gave you."
    ].join(" ")
  },
  servers: [{ url: about.rootUrl }],
  paths: Object.fromEntries(
    endpoints.map((endpoint) => [
      endpoint.path.replace(/:(\w+)/g, "{$1}"),
      pathItem(endpoint, about.schemes)
    ])
  ),
  components: {
    schemas: { Error: jsonSchema(ErrorBody) },
    securitySchemes: about.schemes
  }
})
