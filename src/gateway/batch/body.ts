// The body of a batch read: entries with their defaults, within the limits of requests on a socket.
import { maxHeaderSize } from "node:http"
import { Effect, Schema } from "effect"
import { readBody } from "../http/body.ts"
import type { ErrorDetail } from "../http/errors.ts"
import { versionOf } from "../http/links.ts"
import type { Call } from "../http/request.ts"
import { decodePercent, withoutSlashes } from "../http/routing.ts"
import { GatewaySettings } from "../settings.ts"
import { isObject, type JsonObject } from "../subscriptions/listing/value.ts"

const methods = ["GET", "HEAD", "DELETE", "TRACE", "POST", "PUT", "PATCH"] as const

/** Bodies that a batch without a limit of requests may carry: 1.6 MB take 20 ms to parse. */
const bodiesWhenUnlimited = 100
/** Requests of such a batch: the most that the setting can name. */
const requestsWhenUnlimited = 1_000
/** Headers of one entry, and of the defaults. Apache, for one, takes no more on a socket. */
const headersMax = 100
/** Keys that do not belong to an object and are told to the client. */
const strangersMax = 8

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
export const bodyOf = <S extends Schema.Top>(entry: S) =>
  Schema.Struct({ defaults: Schema.optionalKey(Partial), requests: Schema.Array(entry) })
/** With the defaults in place every entry has a path; as it is sent, the defaults may have it. */
const BatchBody = bodyOf(Entry)

const decodeBody = readBody(BatchBody)

/** One request of a batch. */
export interface Entry {
  /** Path and query, with the version, percent-encoded. */
  readonly target: string
  readonly method: string
  /** By lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  /** Made when the entry's turn comes: merging 25 large bodies at once takes 50 ms. */
  readonly body: () => JsonObject | undefined
}

/** What an entry says goes before the defaults, also inside headers and body. */
const merge = (entry: unknown, defaults: unknown): unknown => {
  if (!isObject(entry) || !isObject(defaults)) return entry
  const merged = new Map(Object.entries(defaults))
  for (const [key, value] of Object.entries(entry))
    merged.set(key, Object.hasOwn(defaults, key) ? merge(value, defaults[key]) : value)
  // A key called __proto__ stays a key.
  return Object.fromEntries(merged)
}

const own = (object: unknown, key: string): unknown =>
  isObject(object) && Object.hasOwn(object, key) ? object[key] : undefined

/** The known keys of an object, and a few of the others. */
const trimmed = (object: JsonObject, known: ReadonlyArray<string>): JsonObject => {
  const strangers = Object.keys(object).filter((key) => !known.includes(key))
  const kept = [...known, ...strangers.slice(0, strangersMax)]
  return Object.fromEntries(
    kept.filter((key) => Object.hasOwn(object, key)).map((key) => [key, object[key]])
  )
}

/** Names count in any case, also where an entry's header replaces one of the defaults. */
const lowerCased = (headers: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))

const isCrowded = (request: unknown): boolean => {
  const headers = own(request, "headers")
  return isObject(headers) && Object.keys(headers).length > headersMax
}

/**
 * A request as the schema is to see it: without what only costs time to look at. The keys of its
 * body are not the batch's, and too many headers are a fault whatever they are.
 */
const outlineOf = (request: unknown): unknown => {
  if (!isObject(request)) return request
  const outline = new Map(Object.entries(trimmed(request, ["path", "method", "headers", "body"])))
  if (isObject(own(request, "body"))) outline.set("body", {})
  const headers = own(request, "headers")
  if (isObject(headers)) outline.set("headers", isCrowded(request) ? {} : lowerCased(headers))
  return Object.fromEntries(outline)
}

/** The body as the schema is to see it: the defaults are in place, also those of headers. */
const prepare = (json: unknown, requestsMax: number): unknown => {
  if (!isObject(json)) return json
  const outline = trimmed(json, ["defaults", "requests"])
  const requests = own(json, "requests")
  const defaults = outlineOf(own(json, "defaults"))
  return {
    ...outline,
    ...(Object.hasOwn(json, "defaults") ? { defaults } : {}),
    // No more entries than it takes to see that they are too many.
    ...(Array.isArray(requests)
      ? {
          requests: requests
            .slice(0, requestsMax + 1)
            .map((entry) => merge(outlineOf(entry), defaults))
        }
      : {})
  }
}

/** Characters that cannot stand in a target, as UTF-8. A path that is too long anyway is left. */
const encoded = (path: string): string =>
  path.length > maxHeaderSize
    ? path
    : path.replace(/[^\x21-\x7e]+/gu, (text) =>
        Buffer.from(text).toString("hex").replace(/../g, "%$&")
      )

/** The prefix is added unless the path has it; whole segments count. */
const targetOf = (path: string, version: string): string => {
  const target = encoded(path)
  return new RegExp(`^/${version}(?=[/?]|$)`).test(target) ? target : `/${version}${target}`
}

export const pathOf = (target: string): string => {
  const path = target.split("?", 1)[0] ?? ""
  return decodePercent(path) ?? path
}

/** What could not be sent on a socket by itself; undefined when it could. */
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

type Sound = (typeof BatchBody.Type)["requests"][number]

const entryOf = (sound: Sound, raw: unknown, defaults: unknown, version: string): Entry => {
  return {
    target: targetOf(sound.path, version),
    method: sound.method ?? "GET",
    headers: sound.headers ?? {},
    body: () => {
      const [given, fallback] = [own(raw, "body"), own(defaults, "body")]
      return (given === undefined ? fallback : merge(given, fallback)) as JsonObject | undefined
    }
  }
}

/** The entries of a batch; what is wrong with them goes into `faults`. */
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
    errors.push({ location: "body", name, description })
  const defaults = own(raw, "defaults")
  const given = (own(raw, "requests") ?? []) as ReadonlyArray<unknown>
  const crowded = `Must not have more than ${headersMax} headers`
  if (isCrowded(defaults)) addError("defaults.headers", crowded)
  if (value === undefined) return []
  if (given.length > requestsMax)
    addError("requests", `Number of requests is limited to ${requestsMax}`)
  const version = versionOf(settings)
  const entries = value.requests.map((sound, i) => entryOf(sound, given[i], defaults, version))
  let isNested = false
  for (const [i, entry] of entries.entries()) {
    const wrong = headError(entry)
    if (isCrowded(given[i])) addError(`requests.${i}.headers`, crowded)
    else if (wrong !== undefined) addError(`requests.${i}`, wrong)
    else isNested ||= withoutSlashes(pathOf(entry.target)) === `/${version}/batch`
  }
  if (isNested) addError("requests", "A batch must not contain a batch")
  return entries
})
