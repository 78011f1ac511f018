// POST /batch: runs several requests in order, each on its own, within the limits of requests on a
// socket. There is no rollback: after an error of the server or the storage, that error is the
// response to the batch, and earlier writes stay. The client may repeat every write.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { isObject, type JsonObject } from "#basics/json.ts"
import { Settings } from "#config"
import { maxHeaderSize } from "./http/node-http.ts"
import { type ApiRequest, BodyTooLarge, type Call, readBody } from "./http/request.ts"
import {
  type ApiResponse,
  type ErrorDetail,
  errorIn,
  errorResponse,
  jsonResponse
} from "./http/response.ts"
import { isTryLater } from "./http/response-headers.ts"
import { decodePercent, withoutSlashes } from "./http/routing.ts"
import { versionPrefix } from "./http/version.ts"
import { Gateway, operation } from "./operation.ts"
import { GatewaySettings } from "./settings.ts"

/**
 * Bytes of all responses in a batch. The largest single response is a list: 250 KB, or 1 MB where a
 * client of NATS stored larger subscriptions. Without a limit, a batch of 246 bytes would get 25 of
 * them: 17 MB.
 */
const responseBytesMax = 4 * 1024 * 1024

/** The bytes of a batch without a limit of requests, in bodies: 1.6 MB take 20 ms to parse. */
const bodiesWhenUnlimited = 100
/** The requests of such a batch: the largest value of the setting. */
const requestsWhenUnlimited = 1_000
/** Headers of one entry, and of the defaults: the limit of Apache. */
const headersMax = 100
/** The most unknown keys of one object that an error lists. */
const unknownKeysMax = 8

const methods = ["GET", "HEAD", "DELETE", "TRACE", "POST", "PUT", "PATCH"] as const

const Path = Schema.String.pipe(
  Schema.check(Schema.isPattern(/^\//u, { message: "Must start with a slash" }))
)
const optionalParts = {
  method: Schema.optionalKey(Schema.Literals(methods)),
  headers: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  body: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown))
}
const WholeEntry = Schema.Struct({ path: Path, ...optionalParts })
const PartialEntry = Schema.Struct({ path: Schema.optionalKey(Path), ...optionalParts })
/** The schema of a batch's body, for entries of a schema. */
const bodyOf = <S extends Schema.Top>(entry: S) =>
  Schema.Struct({ defaults: Schema.optionalKey(PartialEntry), requests: Schema.Array(entry) })
/** A batch after its defaults were merged: every entry has a path. */
const BatchBody = bodyOf(WholeEntry)

const decodeBody = readBody(BatchBody)

const BatchResponse = Schema.Struct({
  responses: Schema.Array(
    Schema.Struct({
      path: Schema.String,
      status: Schema.Int,
      headers: Schema.Record(Schema.String, Schema.String),
      body: Schema.Unknown
    })
  )
}).annotate({ identifier: "BatchResponses" })

export const batchPost = operation({
  access: "anyone",
  takesJson: "always",
  read: (call, errors) => readBatch(call, errors),
  run: Effect.fnUntraced(function* (entries, call) {
    const responses: Responses = { texts: [], bytes: 0, full: undefined }
    for (const entry of entries) {
      // Let other requests run between the entries.
      yield* Effect.yieldNow
      const aborted = yield* addResponse(responses, entry, call)
      if (aborted !== undefined) return aborted
    }
    const { texts } = responses
    return { ...jsonResponse(`{"responses":[${texts.join()}]}`), batchSize: entries.length }
  }),
  doc: {
    summary: "Several requests in one",
    body: bodyOf(PartialEntry),
    bodyExample: {
      defaults: { method: "PUT" },
      requests: [{ path: "/channels/news/registration" }, { path: "/channels/sport/registration" }]
    },
    bodyRequired: true,
    responses: { 200: BatchResponse },
    errors: [400, 413, 415]
  }
})

/** The responses so far. */
interface Responses {
  readonly texts: Array<string>
  bytes: number
  /**
   * The error that the first response that does not fit, and all behind it, get instead. No later
   * entry runs: it may depend on this one.
   */
  full: Full | undefined
}
type Full = "response-too-large" | "too-many-at-once" | "unavailable"

/** Runs an entry and adds its response. Returns the response instead when the batch must stop. */
const addResponse = Effect.fnUntraced(function* (responses: Responses, entry: Entry, call: Call) {
  if (responses.full !== undefined)
    return void add(responses, yield* refused(entry, responses.full))
  const { response, target } = yield* runEntry(entry, call)
  if (response.aborts) return response
  const text = textOf(target, entry, response)
  const bytes = Buffer.byteLength(text)
  responses.full =
    responses.bytes + bytes > responseBytesMax
      ? "response-too-large"
      : call.request.reserveResponseBytes(bytes)
  // Always include the response to a write, even beyond the limit.
  const isShown = responses.full === undefined || !isSafe(entry)
  return void add(responses, isShown ? text : yield* refused(entry, responses.full!))
})

/** The response to an entry for whose own there is no room. */
const refused = Effect.fnUntraced(function* (entry: Entry, code: Full) {
  const { retryAfterSeconds } = yield* Settings
  const response = errorResponse(code)
  const later = isTryLater(response) ? { "Retry-After": String(retryAfterSeconds) } : {}
  const headers = { ...response.headers, ...later }
  return textOf(entry.target, entry, { ...response, headers })
})

const add = (responses: Responses, text: string): void => {
  responses.bytes += Buffer.byteLength(text)
  responses.texts.push(text)
}

/** Whether an entry only reads: then a batch may drop its response. */
const isSafe = ({ method }: Entry): boolean => method === "GET" || method === "HEAD"

/** Runs an entry, and follows a redirect of routing once. */
const runEntry = Effect.fnUntraced(function* (entry: Entry, call: Call) {
  const { handleRequest } = yield* Gateway
  const { target } = entry
  const body = entry.body()
  const response = yield* handleRequest(requestOf(call, entry, target, body))
  const { movedTo } = response
  if (movedTo === undefined) return { target, response }
  return { target: movedTo, response: yield* handleRequest(requestOf(call, entry, movedTo, body)) }
})

/** The request of an entry. The headers of the batch are defaults for those of the entry. */
const requestOf = (
  { request }: Call,
  { headers, method }: Entry,
  target: string,
  body: unknown
): ApiRequest => {
  const { "content-length": _, "transfer-encoding": __, ...inherited } = request.headers
  const bytes = new TextEncoder().encode(body === undefined ? "" : JSON.stringify(body))
  return {
    ...request,
    method,
    target,
    headers: {
      ...inherited,
      ...(body === undefined ? {} : { "content-type": "application/json; charset=utf-8" }),
      ...headers
    },
    hasBody: body !== undefined,
    body: (bytesMax) =>
      bytes.length > bytesMax ? Effect.fail(new BodyTooLarge()) : Effect.succeed(bytes),
    batched: true
  }
}

/** The JSON text of one entry in `responses`. */
const textOf = (target: string, { method }: Entry, response: ApiResponse): string => {
  const { body, headers, jsonText, status, text } = response
  const typed =
    body === undefined ? headers : { ...headers, "Content-Type": "application/json; charset=UTF-8" }
  const head = JSON.stringify({ path: pathOf(target), status, headers: typed })
  const content = method === "HEAD" ? '""' : (jsonText ?? JSON.stringify(text ?? body ?? ""))
  return `${head.slice(0, -1)},"body":${content}}`
}

/** One request of a batch. */
interface Entry {
  /** Path and query, with the version, percent-encoded. */
  readonly target: string
  readonly method: string
  /** Names are in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** Computed when the entry runs: merging 25 large bodies at once takes 50 ms. */
  readonly body: () => JsonObject | undefined
}

/** The entries of a batch. Adds their errors to `errors`. */
const readBatch = Effect.fnUntraced(function* ({ request }: Call, errors: Array<ErrorDetail>) {
  const settings = yield* GatewaySettings
  const requestsMax = settings.batchMaxRequests || requestsWhenUnlimited
  const times = settings.batchMaxRequests || bodiesWhenUnlimited
  const { raw, value } = yield* decodeBody(request, errors, {
    times,
    prepare: (json) => prepare(json, requestsMax)
  })
  const addError = (name: string, description: string) =>
    errors.push(errorIn("body", name, description))
  const defaults = own(raw, "defaults")
  const given = (own(raw, "requests") ?? []) as ReadonlyArray<unknown>
  const crowded = `Must not have more than ${headersMax} headers`
  if (isCrowded(defaults)) addError("defaults.headers", crowded)
  if (value === undefined) return []
  if (given.length > requestsMax)
    addError("requests", `Number of requests is limited to ${requestsMax}`)
  const entries = value.requests.map((decoded, i) => entryOf(decoded, given[i], defaults))
  let isNested = false
  for (const [i, entry] of entries.entries()) {
    const wrong = headError(entry)
    if (isCrowded(given[i])) addError(`requests.${i}.headers`, crowded)
    else if (wrong !== undefined) addError(`requests.${i}`, wrong)
    else isNested ||= withoutSlashes(pathOf(entry.target)) === `/${versionPrefix}/batch`
  }
  if (isNested) addError("requests", "A batch must not contain a batch")
  return entries
})

/** The body as the schema decodes it, with the defaults merged into the entries. */
const prepare = (json: unknown, requestsMax: number): unknown => {
  if (!isObject(json)) return json
  const outline = trimmed(json, ["defaults", "requests"])
  const requests = own(json, "requests")
  const defaults = outlineOf(own(json, "defaults"))
  return {
    ...outline,
    ...(Object.hasOwn(json, "defaults") ? { defaults } : {}),
    // One entry more than allowed is enough for the error.
    ...(Array.isArray(requests)
      ? {
          requests: requests
            .slice(0, requestsMax + 1)
            .map((entry) => merge(outlineOf(entry), defaults))
        }
      : {})
  }
}

/**
 * A request as the schema decodes it, without parts that only cost time: the body, which the
 * entry's endpoint checks, and too many headers, which are an error anyway.
 */
const outlineOf = (request: unknown): unknown => {
  if (!isObject(request)) return request
  const outline = new Map(Object.entries(trimmed(request, ["path", "method", "headers", "body"])))
  if (isObject(own(request, "body"))) outline.set("body", {})
  const headers = own(request, "headers")
  if (isObject(headers)) outline.set("headers", isCrowded(request) ? {} : lowerCased(headers))
  return Object.fromEntries(outline)
}

/** An object with its known keys and at most some unknown ones. */
const trimmed = (object: JsonObject, known: ReadonlyArray<string>): JsonObject => {
  const unknown = Object.keys(object).filter((key) => !known.includes(key))
  const names = [...known, ...unknown.slice(0, unknownKeysMax)]
  return Object.fromEntries(
    names.filter((key) => Object.hasOwn(object, key)).map((key) => [key, object[key]])
  )
}

/** Headers with lower-case names, so that a header of an entry replaces that of the defaults. */
const lowerCased = (headers: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))

const isCrowded = (request: unknown): boolean => {
  const headers = own(request, "headers")
  return isObject(headers) && Object.keys(headers).length > headersMax
}

/** The entry with missing values from the defaults, also inside headers and body. */
const merge = (entry: unknown, defaults: unknown): unknown => {
  if (!isObject(entry) || !isObject(defaults)) return entry
  const merged = new Map(Object.entries(defaults))
  for (const [key, value] of Object.entries(entry))
    merged.set(key, Object.hasOwn(defaults, key) ? merge(value, defaults[key]) : value)
  // Object.fromEntries defines properties: a key `__proto__` stays a key.
  return Object.fromEntries(merged)
}

const own = (object: unknown, key: string): unknown =>
  isObject(object) && Object.hasOwn(object, key) ? object[key] : undefined

type DecodedEntry = (typeof BatchBody.Type)["requests"][number]

const entryOf = (decoded: DecodedEntry, raw: unknown, defaults: unknown): Entry => {
  return {
    target: targetOf(decoded.path),
    method: decoded.method ?? "GET",
    headers: decoded.headers ?? {},
    body: () => {
      const [given, fallback] = [own(raw, "body"), own(defaults, "body")]
      return (given === undefined ? fallback : merge(given, fallback)) as JsonObject | undefined
    }
  }
}

/** The path with the version prefix. Compares the whole first segment. */
const targetOf = (path: string): string => {
  const target = encoded(path)
  return versioned.test(target) ? target : `/${versionPrefix}${target}`
}

const versioned = new RegExp(`^/${versionPrefix}(?=[/?]|$)`)

/** A path with percent-encoded UTF-8. Skips a path that is too long anyway. */
const encoded = (path: string): string =>
  path.length > maxHeaderSize
    ? path
    : path.replace(/[^\x21-\x7e]+/gu, (text) =>
        Buffer.from(text).toString("hex").replace(/../g, "%$&")
      )

/** The decoded path of a target. */
const pathOf = (target: string): string => {
  const path = target.split("?", 1)[0] ?? ""
  return decodePercent(path) ?? path
}

/** The error of an entry that could not be sent on a socket; undefined for a valid entry. */
const headError = ({ headers, method, target }: Entry): string | undefined => {
  const lines = Object.entries(headers)
  if (lines.some(([name]) => !/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)))
    return "The name of a header must be a token (RFC 9110 section 5.6.2)"
  // biome-ignore lint/suspicious/noControlCharactersInRegex: no header may hold them
  if (lines.some(([, value]) => /[\x00-\x08\x0a-\x1f\x7f]/.test(value)))
    return "A header must not hold control characters"
  const bytes = lines.reduce(
    (sum, [name, value]) => sum + name.length + Buffer.byteLength(value) + ": \r\n".length,
    method.length + target.length + " HTTP/1.1\r\n".length + 1
  )
  return bytes > maxHeaderSize
    ? `Path and headers must not have more than ${maxHeaderSize} bytes together`
    : undefined
}
