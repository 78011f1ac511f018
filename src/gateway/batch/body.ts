// Reads the body of a batch: entries merged with their defaults, within the limits of requests on a
// socket.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { isObject, type JsonObject } from "#basics/json.ts"
import { readBody } from "../http/body.ts"
import { type ErrorDetail, errorIn } from "../http/errors.ts"
import { maxHeaderSize } from "../http/node-http.ts"
import type { Call } from "../http/request.ts"
import { decodePercent, withoutSlashes } from "../http/routing.ts"
import { versionPrefix } from "../http/version.ts"
import { GatewaySettings } from "../settings.ts"

const methods = ["GET", "HEAD", "DELETE", "TRACE", "POST", "PUT", "PATCH"] as const

/** The bytes of a batch without a limit of requests, in bodies: 1.6 MB take 20 ms to parse. */
const bodiesWhenUnlimited = 100
/** The requests of such a batch: the largest value of the setting. */
const requestsWhenUnlimited = 1_000
/** Headers of one entry, and of the defaults: the limit of Apache. */
const headersMax = 100
/** The most unknown keys of one object that an error lists. */
const unknownKeysMax = 8

const Path = Schema.String.pipe(
  Schema.check(Schema.isPattern(/^\//u, { message: "Must start with a slash" }))
)
const optionalParts = {
  method: Schema.optionalKey(Schema.Literals(methods)),
  headers: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  body: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown))
}
const Entry = Schema.Struct({ path: Path, ...optionalParts })
export const Partial = Schema.Struct({ path: Schema.optionalKey(Path), ...optionalParts })
/** The schema of a batch's body, for entries of a schema. */
export const bodyOf = <S extends Schema.Top>(entry: S) =>
  Schema.Struct({ defaults: Schema.optionalKey(Partial), requests: Schema.Array(entry) })
/** A batch after its defaults were merged: every entry has a path. */
const BatchBody = bodyOf(Entry)

const decodeBody = readBody(BatchBody)

/** One request of a batch. */
export interface Entry {
  /** Path and query, with the version, percent-encoded. */
  readonly target: string
  readonly method: string
  /** Names are in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** Computed when the entry runs: merging 25 large bodies at once takes 50 ms. */
  readonly body: () => JsonObject | undefined
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

/** A path with percent-encoded UTF-8. Skips a path that is too long anyway. */
const encoded = (path: string): string =>
  path.length > maxHeaderSize
    ? path
    : path.replace(/[^\x21-\x7e]+/gu, (text) =>
        Buffer.from(text).toString("hex").replace(/../g, "%$&")
      )

const versioned = new RegExp(`^/${versionPrefix}(?=[/?]|$)`)

/** The path with the version prefix. Compares the whole first segment. */
const targetOf = (path: string): string => {
  const target = encoded(path)
  return versioned.test(target) ? target : `/${versionPrefix}${target}`
}

/** The decoded path of a target. */
export const pathOf = (target: string): string => {
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

/** The entries of a batch. Adds their errors to `errors`. */
export const readBatch = Effect.fnUntraced(function* (
  { request }: Call,
  errors: Array<ErrorDetail>
) {
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
