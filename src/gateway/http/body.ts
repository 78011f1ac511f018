// Request bodies: bytes to JSON to what a schema says, collecting every fault on the way.
import { isUtf8 } from "node:buffer"
import { Effect, Schema, SchemaIssue } from "effect"
import { Settings } from "#config"
import { depthMax, parseJson } from "#domain/json.ts"
import { type ErrorDetail, refuse, refuseInvalid } from "./errors.ts"
import { isJson } from "./media.ts"
import type { ApiRequest, Refused } from "./request.ts"

const required: ErrorDetail = { location: "body", name: "", description: "Required" }
const notJson: ErrorDetail = {
  location: "body",
  name: "",
  description: "Invalid JSON: the body is not a JSON text"
}
const broken: ErrorDetail = {
  location: "body",
  name: "",
  description: "The body ended before its length"
}
const tooDeep: ErrorDetail = {
  location: "body",
  name: "",
  description: `Invalid JSON: nested more than ${depthMax} levels deep`
}
const notMapping: ErrorDetail = {
  location: "body",
  name: "",
  description: "Invalid JSON: must be an object or an array"
}

/** `times`: a batch carries the bodies of several requests. */
const bytesOf = (request: ApiRequest, times = 1): Effect.Effect<Uint8Array, Refused, Settings> =>
  Effect.flatMap(Settings, ({ bodyBytesMax }) => request.body(bodyBytesMax * times)).pipe(
    Effect.catchTags({
      BodyTooLarge: () => refuse("bodyTooLarge"),
      BodyBroken: () => refuseInvalid([broken]),
      BodyCrowded: ({ by }) => refuse(by === "address" ? "tooManyAtOnce" : "unavailable")
    })
  )

/** The JSON of a body, or what is wrong with it. A byte order mark stays in the text, and is no JSON. */
const parse = (bytes: Uint8Array): { readonly json: unknown } | ErrorDetail => {
  if (!isUtf8(bytes)) return notJson
  const parsed = parseJson(
    Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8")
  )
  return parsed === "malformed" ? notJson : parsed === "deep" ? tooDeep : parsed
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

/** Dotted names; keys that do not belong are reported together, at the object that holds them. */
const errorsOf = (issue: SchemaIssue.Issue): ReadonlyArray<ErrorDetail> => {
  const errors: Array<ErrorDetail> = []
  const strangers = new Map<string, Array<string>>()
  for (const { message, path = [] } of format(issue).issues) {
    const names = path.map((part) => String(typeof part === "object" ? part.key : part))
    if (message !== "Unrecognised key")
      errors.push({ location: "body", name: names.join("."), description: message })
    else {
      const holder = names.slice(0, -1).join(".")
      const known = strangers.get(holder) ?? []
      known.push(names.at(-1) ?? "")
      strangers.set(holder, known)
    }
  }
  for (const [name, keys] of strangers) {
    errors.push({
      location: "body",
      name,
      description: `Unrecognised keys: ${keys.map((key) => key.slice(0, 64)).join(", ")}`
    })
  }
  return errors
}

/** A value as the schema has it; what does not fit goes into `faults`. */
const decoderOf = <S extends Schema.Top & { readonly DecodingServices: never }>(schema: S) => {
  const decode = Schema.decodeUnknownResult(
    schema as unknown as Schema.ConstraintCodec<S["Type"], unknown>,
    {
      errors: "all",
      onExcessProperty: "error"
    }
  )
  return (value: unknown, errors: Array<ErrorDetail>): S["Type"] | undefined => {
    const result = decode(value)
    if (result._tag === "Success") return result.success
    // One by one: a batch can have more of them than a call takes arguments.
    for (const error of errorsOf(result.failure.issue)) errors.push(error)
    return undefined
  }
}

export interface Body<A> {
  /** The body as the schema has it; undefined when a fault was found. */
  readonly value: A | undefined
  /** The body as it came, for rules that look further than a schema; undefined when it is not even JSON. */
  readonly raw: unknown
}

interface Reading {
  /** A batch carries the bodies of so many requests. */
  readonly times?: number
  /** Sees the JSON before the schema does. */
  readonly prepare?: (json: unknown) => unknown
}

/** A missing body counts as an empty object. */
export const readBody = <S extends Schema.Top & { readonly DecodingServices: never }>(
  schema: S
) => {
  const decode = decoderOf(schema)
  return (
    request: ApiRequest,
    errors: Array<ErrorDetail>,
    { prepare = (json) => json, times = 1 }: Reading = {}
  ): Effect.Effect<Body<S["Type"]>, Refused, Settings> =>
    Effect.map(bytesOf(request, times), (bytes) => {
      const parsed = bytes.length === 0 ? { json: {} } : parse(bytes)
      if ("location" in parsed) errors.push(parsed, required)
      else if (typeof parsed.json !== "object" || parsed.json === null)
        errors.push(notMapping, required)
      else return { value: decode(prepare(parsed.json), errors), raw: parsed.json }
      return { value: undefined, raw: undefined }
    })
}

/** Of methods that take no body: one that claims to be JSON must at least be JSON. */
export const checkNoBody = (
  request: ApiRequest,
  errors: Array<ErrorDetail>
): Effect.Effect<void, Refused, Settings> => {
  if (!request.hasBody || !isJson(request)) return Effect.void
  return Effect.map(bytesOf(request), (bytes) => {
    const parsed = bytes.length === 0 ? { json: {} } : parse(bytes)
    if ("location" in parsed) errors.push(parsed)
  })
}
