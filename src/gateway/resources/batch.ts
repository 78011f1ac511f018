// POST /batch: several requests in one, answered in order, each judged alone. Nothing is rolled back: when the storage fails in
// the middle, the batch answers with that failure and what was written before stays; every write may be repeated.
import { Effect, Schema } from "effect"
import { Settings } from "#config"
import { type Answer, type Ask, BodyTooLarge, type Call, ok } from "../ask.ts"
import { readBody } from "../body.ts"
import { type Fault, refuse } from "../faults.ts"
import { versionOf } from "../links.ts"
import { isObject } from "../listing/value.ts"
import type { Operation } from "../operation.ts"
import { decodePercent } from "../routing.ts"
import { GatewaySettings } from "../settings.ts"

const methods = ["GET", "HEAD", "DELETE", "TRACE", "POST", "PUT", "PATCH"] as const
/** A batch without a limit of requests still has one of bytes. */
const bodiesWhenUnlimited = 100

const Path = Schema.String.pipe(
  Schema.check(Schema.isPattern(/^\//u, { message: "Must start with a slash" }))
)
const optionalParts = {
  method: Schema.optionalKey(Schema.Literals(methods)),
  headers: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  body: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown))
}
const Entry = Schema.Struct({ path: Path, ...optionalParts })
type Entry = typeof Entry.Type
const Partial = Schema.Struct({ path: Schema.optionalKey(Path), ...optionalParts })
const bodyOf = <S extends Schema.Top>(entry: S) =>
  Schema.Struct({ defaults: Schema.optionalKey(Partial), requests: Schema.Array(entry) })
/** With the defaults in place every entry has a path; as it is sent, the defaults may have it. */
const BatchBody = bodyOf(Entry)

const BatchAnswer = Schema.Struct({
  responses: Schema.Array(
    Schema.Struct({
      path: Schema.String,
      status: Schema.Int,
      headers: Schema.Record(Schema.String, Schema.String),
      body: Schema.Unknown
    })
  )
})

/** What an entry says goes before the defaults, also inside headers and body. */
const merge = (entry: unknown, defaults: unknown): unknown => {
  if (!isObject(entry) || !isObject(defaults)) return entry
  const missing = Object.entries(defaults).filter(([key]) => !Object.hasOwn(entry, key))
  return {
    ...Object.fromEntries(
      Object.entries(entry).map(([key, value]) => [key, merge(value, defaults[key])])
    ),
    ...Object.fromEntries(missing)
  }
}

/** The defaults under every entry; undefined when they make more of the batch than so many bytes: 1,000 headers for 20,000 entries took 50 s. */
const withDefaults = (json: unknown, bytesMax: number): unknown => {
  if (!isObject(json) || !Array.isArray(json["requests"])) return json
  const { defaults, requests } = json
  if (Buffer.byteLength(JSON.stringify(defaults ?? null)) * requests.length > bytesMax)
    return undefined
  return { ...json, requests: requests.map((entry) => merge(entry, defaults)) }
}

/** No more entries than it takes to see that they are too many. */
const firstOf = (json: unknown, requestsMax: number): unknown =>
  isObject(json) && Array.isArray(json["requests"])
    ? { ...json, requests: json["requests"].slice(0, requestsMax + 1) }
    : json

const decodeBody = readBody(BatchBody)

/** Characters that cannot stand in a target, as UTF-8. */
const encoded = (path: string): string =>
  path.replace(/[^\x21-\x7e]/gu, (char) =>
    Buffer.from(char).reduce((text, byte) => `${text}%${byte.toString(16).padStart(2, "0")}`, "")
  )

/** The prefix is added unless the path has it; whole segments count. */
const targetOf = (path: string, version: string): string => {
  const target = encoded(path)
  return new RegExp(`^/${version}(?=[/?]|$)`).test(target) ? target : `/${version}${target}`
}

const pathOf = (target: string): string => {
  const path = target.split("?", 1)[0] ?? ""
  return decodePercent(path) ?? path
}

/** Every header of the batch counts for its entries, unless an entry says otherwise. */
const askOf = (
  { ask }: Call,
  { body, headers = {}, method = "GET" }: Entry,
  target: string
): Ask => {
  const { "content-length": _, "transfer-encoding": __, ...inherited } = ask.headers
  const own = Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])
  )
  const bytes =
    body === undefined ? new Uint8Array() : new TextEncoder().encode(JSON.stringify(body))
  return {
    method,
    target,
    headers: {
      ...inherited,
      ...(body === undefined ? {} : { "content-type": "application/json; charset=utf-8" }),
      ...own
    },
    hasBody: body !== undefined,
    body: (bytesMax) =>
      bytes.length > bytesMax ? Effect.fail(new BodyTooLarge()) : Effect.succeed(bytes),
    batched: true,
    address: ask.address
  }
}

const responseOf = (
  target: string,
  method: string | undefined,
  { body, headers, html, status }: Answer
) => ({
  path: pathOf(target),
  status,
  headers:
    body === undefined
      ? headers
      : { ...headers, "Content-Type": "application/json; charset=UTF-8" },
  body: method === "HEAD" ? "" : (html ?? body ?? "")
})

interface Input {
  readonly requests: ReadonlyArray<Entry>
}

const read = Effect.fnUntraced(function* ({ ask }: Call, faults: Array<Fault>) {
  const settings = yield* GatewaySettings
  const { batchMaxRequests } = settings
  const { bodyBytesMax } = yield* Settings
  const times = batchMaxRequests || bodiesWhenUnlimited
  let isTooLarge = false
  const prepare = (json: unknown): unknown => {
    const whole = withDefaults(
      firstOf(json, batchMaxRequests || Number.POSITIVE_INFINITY),
      2 * (times + 1) * bodyBytesMax
    )
    isTooLarge = whole === undefined
    return whole
  }
  const { value } = yield* decodeBody(ask, faults, { times, prepare })
  if (isTooLarge) return yield* refuse("bodyTooLarge")
  const requests = value?.requests ?? []
  const fault = (description: string) =>
    faults.push({ location: "body", name: "requests", description })
  if (batchMaxRequests > 0 && requests.length > batchMaxRequests)
    fault(`Number of requests is limited to ${batchMaxRequests}`)
  const version = versionOf(settings)
  const own = `/${version}/batch`
  if (requests.some(({ path }) => pathOf(targetOf(path, version)).replace(/\/+$/, "") === own))
    fault("A batch must not contain a batch")
  return { requests }
})

export const batchPost: Operation<Input> = {
  access: "anyone",
  takesJson: "always",
  read,
  run: Effect.fnUntraced(function* ({ requests }, call, { answerTo }) {
    const version = versionOf(yield* GatewaySettings)
    const responses: Array<ReturnType<typeof responseOf>> = []
    for (const entry of requests) {
      let target = targetOf(entry.path, version)
      let answer = yield* answerTo(askOf(call, entry, target))
      const location = answer.status === 307 ? answer.headers["Location"] : undefined
      if (location !== undefined) {
        // The host may be one that the entry names.
        target = location.replace(/^[a-z]+:\/\/[^/]+/, "")
        answer = yield* answerTo(askOf(call, entry, target))
      }
      if (answer.aborts) return answer
      responses.push(responseOf(target, entry.method, answer))
    }
    return { ...ok({ responses }), batchSize: requests.length }
  }),
  doc: {
    summary: "Several requests in one",
    body: bodyOf(Partial),
    bodyExample: {
      defaults: { method: "PUT" },
      requests: [{ path: "/channels/news/registration" }, { path: "/channels/sport/registration" }]
    },
    bodyRequired: true,
    answers: { 200: BatchAnswer },
    faults: [400, 413, 415]
  }
}
