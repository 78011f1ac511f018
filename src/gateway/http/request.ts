// A request of the API, independent of Node.js: the same form on a socket, on NATS and as an entry
// of a batch. How its body becomes the type of a schema, and what its headers say of media types.
import { isUtf8 } from "node:buffer"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import { depthMax, parseWhole } from "#basics/json.ts"
import type { Caller, User } from "#identity/identity.ts"
import type { UserToken } from "#streams/tokens.ts"
import { type ErrorDetail, errorIn, type Refused, refuse, refuseInvalid } from "./response.ts"

export interface ApiRequest {
  readonly method: string
  /** Path and query as received, percent-encoded. */
  readonly target: string
  /** Names are in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly hasBody: boolean
  /** Reads the body. Nothing reads from the socket before this effect runs. */
  readonly body: (
    bytesMax: number
  ) => Effect.Effect<Uint8Array, BodyTooLarge | BodyBroken | BodyCrowded>
  /**
   * Reserves memory for a part of a response, until the response is sent. The error when the
   * client's address, or all addresses together, have reached their limit.
   */
  readonly reserveResponseBytes: (bytes: number) => "too-many-at-once" | "unavailable" | undefined
  /** Whether the request is an entry of a batch. */
  readonly batched: boolean
  /** The key of limits per address: the IPv4 address or the IPv6 /64; "" without an address. */
  readonly address: string
  /** The headers that arrived on the connection: those of the batch, if this is an entry of one. */
  readonly received: Readonly<Record<string, string | undefined>>
  /** Whether the peer of the connection is a trusted proxy. */
  readonly fromTrustedProxy: boolean
  /** The port of this machine at which the connection arrived. */
  readonly port: number
  /** The source that sends the request on NATS, which binds it to its name; unset over HTTP. */
  readonly source?: string
  /** The refusal of a request on NATS whose body does not make a path. */
  readonly refusal?: Refused
  /** Whether a header arrived more than once on the connection. */
  readonly isRepeated: (header: string) => boolean
}

export class BodyTooLarge extends Data.TaggedError("BodyTooLarge") {}

/**
 * The body ended before its announced length. The part that arrived must not be used: an empty body
 * would publish an empty broadcast.
 */
export class BodyBroken extends Data.TaggedError("BodyBroken") {}

/** The bodies in memory, of one address or of all together, have reached their limit. */
export class BodyCrowded extends Data.TaggedError("BodyCrowded")<{
  readonly by: "address" | "all"
}> {}

/** A request whose endpoint is known and whose caller is authorised. */
export interface Call {
  readonly request: ApiRequest
  readonly caller: Caller | undefined
  /** The user of the subscriptions and registrations in question: the caller or a named user. */
  readonly user: User | undefined
  /** The name of the endpoint. */
  readonly endpoint: string
  /** The decoded segments of the path that its pattern names. */
  readonly params: Readonly<Record<string, string>>
  /** The part of the target after `?`. */
  readonly query: string
  /** Absolute URL of the API without trailing slash. */
  readonly rootUrl: string
  /** Lets the log name whom the request of an operator is about, also if it fails. */
  readonly isAbout: (person: UserToken) => void
}

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

interface Body<A> {
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

const readFields = readBody(Schema.Record(Schema.String, Schema.String))

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

const json = "application/json"
const form = "application/x-www-form-urlencoded"

export const notAcceptable = errorIn("header", "Accept", `Accept must allow ${json}`)
const contentType = (description: string) => errorIn("header", "Content-Type", description)
export const unsupported = contentType(`Content-Type must be ${json}`)
const unsupportedForm = contentType(`Content-Type must be ${form} or ${json}`)

/** The media type of the body; "" without Content-Type. */
const typeOf = ({ headers }: ApiRequest): string =>
  (headers["content-type"] ?? "").split(";")[0]!.trim().toLowerCase()

/** Whether Content-Type is missing or JSON. Ignores its parameters and case. */
export const isJson = (request: ApiRequest): boolean => ["", json].includes(typeOf(request))

/** Whether the body is an HTML form. */
const isForm = (request: ApiRequest): boolean => typeOf(request) === form

/** Whether Content-Type is JSON, with or without a body. */
export const declaresJson = (request: ApiRequest): boolean => typeOf(request) === json

/** Whether Accept allows JSON. A malformed header allows it, an empty header does not. */
export const acceptsJson = (accept: string | undefined): boolean => {
  if (accept === undefined) return true
  if (accept.trim() === "") return false
  const parts = accept.split(",").map((part) => part.trim())
  if (parts.some((part) => !/^[^\s/;]+\/[^\s/;]+\s*(;.*)?$/.test(part))) return true
  const ranges = parts.map(rangeOf).filter((range) => range !== undefined)
  const best = ranges.sort((a, b) => b.specificity - a.specificity)[0]
  return best !== undefined && !(best.quality === 0)
}

/** The specificity and weight of a media range that covers JSON; undefined for other ranges. */
const rangeOf = (
  text: string
): { readonly specificity: number; readonly quality: number } | undefined => {
  const [type = "", ...parameters] = text.split(";").map((part) => part.trim().toLowerCase())
  const specificity = ["*/*", "application/*", json].indexOf(type)
  if (specificity === -1) return undefined
  const q = parameters.find((parameter) => parameter.startsWith("q="))
  return { specificity, quality: q === undefined ? 1 : Number(q.slice(2)) }
}

/** Whether Accept-Encoding names gzip with a weight above 0. */
export const acceptsGzip = (header: string | undefined): boolean =>
  (header ?? "").split(",").some((part) => {
    const [coding, weight = "q=1"] = part.split(";").map((text) => text.trim().toLowerCase())
    return coding === "gzip" && Number(weight.slice(2)) > 0
  })

/** Whether Accept names JSON and no HTML page, as that of a program. */
export const prefersJson = (accept: string | undefined): boolean =>
  accept?.toLowerCase().includes(json) === true && !accept.includes("text/html")

/** Whether Accept prefers an HTML page to JSON. */
export const prefersHtml = (accept: string | undefined): boolean =>
  accept?.includes("text/html") === true && !accept.toLowerCase().includes(json)

/** Whether Accept prefers CSV to JSON. */
export const prefersCsv = (accept: string | undefined): boolean => {
  const ranges = accept?.toLowerCase() ?? ""
  return ranges.includes("text/csv") && !ranges.includes(json)
}
