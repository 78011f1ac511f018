// Reads a request body: bytes to JSON to the type of a schema. Collects errors on the way.
import { isUtf8 } from "node:buffer"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import { depthMax, parseWhole } from "#basics/json.ts"
import { isForm, isJson, unsupportedForm } from "./media.ts"
import type { ApiRequest, Refused } from "./request.ts"
import { type ErrorDetail, errorIn, refuse, refuseInvalid } from "./response.ts"

const inBody = (description: string, name = "") => errorIn("body", name, description)
const required = inBody("Required")
const notJson = inBody("Invalid JSON: the body is not a JSON text")
const broken = inBody("The body ended before its length")
const tooDeep = inBody(`Invalid JSON: nested more than ${depthMax} levels deep`)
const notMapping = inBody("Invalid JSON: must be an object or an array")

/** Larger bodies get 413. With its envelope a body must fit into a message of LOG (32 KiB). */
export const bodyBytesMax = 16_384
/**
 * All errors of a body of so many bytes are collected: at most some 2,000, in about 20 ms. In 240
 * KB, 120,000 took 2 s, for which the process did nothing else.
 */
const allErrorsBytesMax = 4_096

/** The bytes of a body of at most `times` the limit. */
const bytesOf = (request: ApiRequest, times = 1): Effect.Effect<Uint8Array, Refused> =>
  request.body(bodyBytesMax * times).pipe(
    Effect.catchTags({
      BodyTooLarge: () => refuse("body-too-large"),
      BodyBroken: () => refuseInvalid([broken]),
      BodyCrowded: ({ by }) => refuse(by === "address" ? "too-many-at-once" : "unavailable")
    })
  )

/**
 * The JSON value of a body, or the error; an empty object without a body. A byte order mark makes
 * the JSON invalid.
 */
const parse = (bytes: Uint8Array): { readonly json: unknown } | ErrorDetail => {
  if (bytes.length === 0) return { json: {} }
  if (!isUtf8(bytes)) return notJson
  const parsed = parseWhole(
    Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8")
  )
  if (parsed === "malformed") return notJson
  if (parsed === "deep") return tooDeep
  return "loss" in parsed ? inBody(`Invalid JSON: ${parsed.loss}`) : parsed
}

const leaf = (issue: SchemaIssue.Leaf): string => {
  switch (issue._tag) {
    case "MissingKey":
      return "Required"
    case "InvalidType":
      switch (issue.ast._tag) {
        case "Objects":
          return "Must be an object"
        case "Arrays":
          return "Must be an array"
        case "String":
          return "Must be a string"
        default:
          return SchemaIssue.defaultLeafHook(issue)
      }
    case "UnexpectedKey":
      return "Unrecognised key"
    default:
      return SchemaIssue.defaultLeafHook(issue)
  }
}

const format = SchemaIssue.makeFormatterStandardSchemaV1({ leafHook: leaf })

/** Errors have dotted names. All unknown keys of one object share one error. */
const errorsOf = (issue: SchemaIssue.Issue): ReadonlyArray<ErrorDetail> => {
  const errors: Array<ErrorDetail> = []
  const unknownKeys = new Map<string, Array<string>>()
  for (const { message, path = [] } of format(issue).issues) {
    const names = path.map((part) => String(typeof part === "object" ? part.key : part))
    if (message !== "Unrecognised key") errors.push(inBody(message, names.join(".")))
    else {
      const holder = names.slice(0, -1).join(".")
      const known = unknownKeys.get(holder) ?? []
      known.push(names.at(-1) ?? "")
      unknownKeys.set(holder, known)
    }
  }
  for (const [name, keys] of unknownKeys) {
    const shown = keys.map((key) => key.slice(0, 64)).join(", ")
    errors.push(inBody(`Unrecognised keys: ${shown}`, name))
  }
  return errors
}

/** Decodes the value of so many bytes by a schema, and adds what does not fit to `errors`. */
export const decoderOf = <S extends Schema.Top & { readonly DecodingServices: never }>(
  schema: S
) => {
  const decode = Schema.decodeUnknownResult(
    schema as unknown as Schema.ConstraintCodec<S["Type"], unknown>,
    { onExcessProperty: "error" }
  )
  return (value: unknown, bytes: number, errors: Array<ErrorDetail>): S["Type"] | undefined => {
    const result = decode(value, { errors: bytes > allErrorsBytesMax ? "first" : "all" })
    if (result._tag === "Success") return result.success
    errors.push(...errorsOf(result.failure.issue))
    return undefined
  }
}

export interface Body<A> {
  /** The decoded body; undefined when it has an error. */
  readonly value: A | undefined
  /** The JSON as the client sent it, for rules beyond the schema; undefined when it is not JSON. */
  readonly raw: unknown
}

interface Reading {
  /** A batch carries several bodies: the limit is that of one body times this number. */
  readonly times?: number
  /** Changes the JSON before the schema decodes it. */
  readonly prepare?: (json: unknown) => unknown
}

/** A reader of bodies of one schema. A missing body is read as an empty object. */
export const readBody = <S extends Schema.Top & { readonly DecodingServices: never }>(
  schema: S
) => {
  const decode = decoderOf(schema)
  return (
    request: ApiRequest,
    errors: Array<ErrorDetail>,
    { prepare = (json) => json, times = 1 }: Reading = {}
  ): Effect.Effect<Body<S["Type"]>, Refused> =>
    Effect.map(bytesOf(request, times), (bytes) => {
      const parsed = parse(bytes)
      if ("location" in parsed) errors.push(parsed, required)
      else if (typeof parsed.json !== "object" || parsed.json === null)
        errors.push(notMapping, required)
      else return { value: decode(prepare(parsed.json), bytes.length, errors), raw: parsed.json }
      return { value: undefined, raw: undefined }
    })
}

const readFields = readBody(Schema.Record(Schema.String, Schema.String))

/** The texts of a form, or of a JSON object. Of several with one name, the last counts. */
export const readForm = (
  request: ApiRequest,
  errors: Array<ErrorDetail>
): Effect.Effect<Readonly<Record<string, string>>, Refused> => {
  if (isForm(request))
    return Effect.map(bytesOf(request), (bytes) =>
      Object.fromEntries(new URLSearchParams(Buffer.from(bytes).toString("utf8")))
    )
  return isJson(request)
    ? Effect.map(readFields(request, errors), ({ value = {} }) => value)
    : refuseInvalid([unsupportedForm], "unsupported-media-type")
}

/** For methods that ignore their body: a body that declares JSON must be valid JSON. */
export const checkNoBody = (
  request: ApiRequest,
  errors: Array<ErrorDetail>
): Effect.Effect<void, Refused> => {
  if (!request.hasBody || !isJson(request)) return Effect.void
  return Effect.map(bytesOf(request), (bytes) => {
    const parsed = parse(bytes)
    if ("location" in parsed) errors.push(parsed)
  })
}
