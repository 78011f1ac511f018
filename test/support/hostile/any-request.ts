// Arbitrary requests for property tests: every kind of path, query, header and body, far from what
// the API describes. Each is the bytes that go over the wire.
import fc from "fast-check"
import { makeReceiverKeys } from "#cli/listen/push-receiver.ts"
import { authorization } from "./socket.ts"

const receiverKeys = () => {
  const { auth, p256dh } = makeReceiverKeys()
  return { auth, p256dh }
}

/** Names with a meaning in JavaScript, file systems, NATS, parsers or Unicode. */
const odd = fc.constantFrom(
  ...["__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "valueOf", "then"],
  ...["..", ".", "", " ", "*", ">", "a.b", "a..b", ".a", "$", "~", "null", "undefined", "NaN"],
  ...["%00", "%ff", "%", "%zz", "%2e%2e", "%2f", "%F0%9F%98%80", "%ED%A0%80", "%0d%0aX: y"],
  ...["\u{1F600}", "\u0000", "\u007f", "\u00e9", "\ufeff", "\u202e", "a".repeat(3_000)],
  ...["a.".repeat(1_000), "%2e".repeat(1_000), "/".repeat(500), "__proto__.__proto__.x"]
)
const number = fc.constantFrom(
  ...["0", "-0", "-1", "1e400", "-1e400", "9223372036854775807", "9223372036854775808"],
  ...["1".repeat(400), "0x10", "1.5", "1e3", "00", "+1", "1_000", "Infinity"]
)
const text = fc.oneof(
  odd,
  fc.string({ unit: "grapheme", maxLength: 20 }),
  fc.string({ unit: "binary", maxLength: 20 })
)
const nested = (open: string, inner: string, close: string) =>
  fc
    .integer({ min: 1, max: 4_000 })
    .map((depth) => open.repeat(depth) + inner + close.repeat(depth))
const json = fc.oneof(
  fc.json({ maxDepth: 5 }),
  number,
  nested("[", "1", "]"),
  nested('{"a":', "1", "}"),
  nested('{"__proto__":', "{}", "}"),
  nested("[", "", "")
)
const value = fc.oneof(
  text,
  number,
  json,
  fc.base64String({ maxLength: 4_000 }),
  json.map((content) => Buffer.from(content).toString("base64url")),
  fc.array(text, { maxLength: 50 }).map((values) => values.join(","))
)

const prefixes = ["min_", "max_", "gt_", "lt_", "eq_", "not_", "in_", "exclude_", "has_", "like_"]
const name = fc.oneof(
  odd,
  fc.constantFrom("_sort", "_limit", "_since", "_before", "_to", "_fields", "_token", "_unknown"),
  fc.constantFrom("id", "last_modified", "keys.auth", "endpoint", "data"),
  fc.constantFrom("user", "publisher", "state", "since", "before", "outcome", "push_service"),
  fc
    .tuple(fc.constantFrom(...prefixes, "contains_", "contains_any_"), odd)
    .map(([prefix, rest]) => prefix + rest)
)
/** Escapes what would end the target; half of the time everything that is not ASCII, too. */
const written = (content: string, isEncoded: boolean): string =>
  isEncoded
    ? encodeURIComponent(content.toWellFormed())
    : content.replace(/[\s#&\0]/g, (char) => encodeURIComponent(char))
const pair = fc
  .tuple(name, value, fc.boolean())
  .map(([key, content, encoded]) => `${written(key, encoded)}=${written(content, encoded)}`)
const query = fc.oneof(
  { arbitrary: fc.constant(""), weight: 3 },
  { arbitrary: fc.array(pair, { maxLength: 4 }).map((pairs) => `?${pairs.join("&")}`), weight: 8 },
  {
    arbitrary: fc
      .tuple(pair, fc.integer({ min: 1, max: 3_000 }))
      .map(([one, times]) => `?${Array.from({ length: times }, () => one.slice(0, 40)).join("&")}`),
    weight: 1
  }
)

/** Paths of the description with anything in their parameters, and paths off all routes. */
const target = (paths: ReadonlyArray<string>) => {
  const segment = fc
    .tuple(text, fc.boolean())
    .map(([content, encoded]) => written(content, encoded))
  const described = fc
    .tuple(fc.constantFrom(...paths), segment)
    .map(([path, filling]) => `/v1${path.replace(/\{[^}]+\}/g, filling)}`)
  const off = fc
    .tuple(fc.constantFrom("", "/v1", "/v2", "/v1/batch", "/v1/channels"), fc.array(segment))
    .map(([start, segments]) => [start, ...segments].join("/"))
  const path = fc.oneof({ arbitrary: described, weight: 4 }, { arbitrary: off, weight: 1 })
  return fc.tuple(path, query).map(([before, after]) => (before || "/") + after)
}

const headerNames = [
  ...["Accept", "Accept-Encoding", "Content-Encoding", "Content-Type", "Cookie", "Forwarded"],
  ...["If-Match", "If-None-Match", "If-Modified-Since", "Origin", "Range", "Referer", "TTL"],
  ...["Access-Control-Request-Method", "Access-Control-Request-Headers", "Sec-Fetch-Site"],
  ...["Urgency", "Topic", "Idempotency-Key", "X-Forwarded-For", "X-Forwarded-Proto", "TE"],
  ...[
    "Prefer",
    "Last-Event-ID",
    "X-HTTP-Method-Override",
    "Upgrade",
    "Authorization",
    "Host",
    "__proto__",
    "constructor"
  ]
]
const header = fc
  .tuple(fc.constantFrom(...headerNames), value)
  .map(([key, content]) => `${key}: ${content.replace(/[\r\n\0]/g, "").slice(0, 6_000)}`)
const callers = fc.constantFrom(
  authorization("any"),
  authorization("any"),
  "Authorization: Basic !",
  `Authorization: Basic ${Buffer.from(":".repeat(3_000)).toString("base64")}`,
  `Authorization: Bearer ${"a".repeat(3_000)}`,
  "Authorization:",
  "X-Nobody: 1"
)
const types = fc.constantFrom(
  "application/json",
  "application/json",
  "application/json; charset=utf-16",
  "text/plain",
  "application/merge-patch+json",
  "multipart/form-data",
  ""
)
const endpoints = fc.constantFrom(
  "http://127.0.0.1:1/a",
  "https://[::1]/",
  "http://a@b:99999/",
  "x"
)
/** Bodies of renewals: with the secrets of others, spent and made-up ones. */
const renewalBody = (secrets: ReadonlyArray<string>) =>
  fc
    .record({
      renewal: fc.oneof(text, fc.constantFrom(...secrets)),
      data: fc.record(
        {
          endpoint: fc.nat(20).map((n) => `http://127.0.0.1:1/renewed-${n}`),
          keys: fc.constantFrom(...Array.from({ length: 4 }, () => receiverKeys())),
          locale: text
        },
        { requiredKeys: ["endpoint", "keys"] }
      )
    })
    .map((content) => JSON.stringify(content))

/** Bodies of broadcasts to users and channels, and of their changes. */
const memberBody = fc
  .record(
    {
      to: fc.record(
        {
          channels: fc.oneof(json, fc.array(text, { maxLength: 120 })),
          users: fc.oneof(json, fc.array(text, { maxLength: 1_100 })),
          except_users: fc.oneof(json, fc.array(text, { maxLength: 20 }))
        },
        { requiredKeys: [] }
      ),
      data_by_locale: fc.oneof(json, fc.dictionary(text, json, { maxKeys: 25 })),
      at: text,
      delay_seconds: number,
      name: text,
      test: fc.oneof(fc.boolean(), json),
      rate: fc.oneof(number, fc.double()),
      pause_when: json,
      dry_run: fc.oneof(fc.boolean(), json),
      data: fc.oneof(
        json,
        fc.record({ state: fc.constantFrom("paused", "running", "cancelled", "__proto__") })
      )
    },
    { requiredKeys: [] }
  )
  .map((content) => JSON.stringify(content))
const body = fc.oneof(
  { arbitrary: memberBody, weight: 3 },
  json,
  json.map((content) => `{"data":${content}}`),
  fc
    .tuple(endpoints, json, json)
    .map(([endpoint, keys, more]) => JSON.stringify({ data: { endpoint, keys, more } })),
  fc
    .array(fc.tuple(text, json), { maxLength: 40 })
    .map((entries) =>
      JSON.stringify({ requests: entries.map(([path, of]) => ({ path: `/${path}`, body: of })) })
    ),
  json.map((content) => `{"defaults":${content},"requests":[${content},${content}]}`),
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes).toString("latin1")),
  fc.constant(`{"data":{"a":"${"a".repeat(30_000)}"}}`)
)
const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"]

interface Parts {
  readonly method: string
  readonly target: string
  readonly headers: ReadonlyArray<string>
  readonly caller: string
  readonly type: string
  readonly body: string
}

const textOf = (parts: Parts): string => {
  const bytes = Buffer.from(parts.body).toString("latin1")
  const head = [
    `${parts.method} ${Buffer.from(parts.target).toString("latin1")} HTTP/1.1`,
    "Host: a",
    "Connection: close",
    parts.caller,
    ...(parts.type === "" ? [] : [`Content-Type: ${parts.type}`]),
    `Content-Length: ${bytes.length}`,
    ...parts.headers.map((line) => Buffer.from(line).toString("latin1"))
  ]
  return `${head.join("\r\n")}\r\n\r\n${bytes}`
}

/**
 * Any request to a path of `paths` or elsewhere, as Latin-1 text. One of ten is a renewal, by one
 * of `secrets` or another text.
 */
export const anyRequest = (
  paths: ReadonlyArray<string>,
  secrets: ReadonlyArray<string>
): fc.Arbitrary<string> => {
  const any = fc.record({
    method: fc.constantFrom(...methods, "GET", "GET", "POST", "BREW", "get", "M-SEARCH"),
    target: target(paths),
    headers: fc.array(header, { maxLength: 4 }),
    caller: callers,
    type: types,
    body: fc.option(body, { nil: "" })
  })
  const renewal = fc.record({
    method: fc.constant("POST"),
    target: fc.constant("/v1/subscriptions/replace"),
    headers: fc.array(header, { maxLength: 1 }),
    caller: callers,
    type: fc.constant("application/json"),
    body: renewalBody(secrets)
  })
  return fc.oneof({ arbitrary: any, weight: 9 }, { arbitrary: renewal, weight: 1 }).map(textOf)
}
