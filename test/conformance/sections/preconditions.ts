// Contract 3.6: If-Match and If-None-Match.
import { expect } from "vitest"
import type { Api, Request, StoredObject } from "../api.ts"
import { type Case, define, type Expected } from "../table.ts"

type Headers = Readonly<Record<string, string>>

const stored = (api: Api) => api.stored()
const etag = ({ last_modified }: StoredObject, plus = 0) => `"${last_modified + plus}"`

const bad = [
  "123",
  'w/"123"',
  "W/123",
  '"1" "2"',
  '*, "1"',
  '"1',
  "**",
  ",",
  "",
  `"1"${" ".repeat(9_000)}x`
]
/** Of nginx with `gzip`, which makes tags weak. */
const weakTag = (given: StoredObject) => `W/${etag(given)}`
/** A list with empty elements, a comma in a tag, and tags of others. */
const among = (tag: string) => `, "a,b" ,,W/"", "-1","1.5" , ${tag},"123-gzip"`

const object =
  (method: string, headers: (stored: StoredObject) => Headers) =>
  (api: Api, given: StoredObject): Request => ({
    method,
    path: `/subscriptions/${given.id}`,
    headers: headers(given),
    ...(method === "PUT" ? { body: { data: api.subscription() } } : {})
  })

const list =
  (method: string, headers: (stored: StoredObject) => Headers, name = "a") =>
  (api: Api, given: StoredObject): Request => ({
    method,
    path: "/subscriptions",
    headers: headers(given),
    ...(method === "POST" ? { body: { data: api.subscription(name) } } : {})
  })

const modified = (given: StoredObject, existing: boolean): Expected => ({
  status: 412,
  errno: 114,
  message: /^Resource was modified meanwhile|^A tag that begins with W\/ never matches/,
  headers: { ETag: etag(given), "Last-Modified": new Date(given.last_modified).toUTCString() },
  ...(existing ? { body: { details: { existing: given } } } : {})
})

const unchanged = (given: StoredObject): Expected => ({
  status: 304,
  headers: {
    ETag: etag(given),
    "Last-Modified": new Date(given.last_modified).toUTCString(),
    "Cache-Control": "no-cache, no-store"
  }
})

type Row = readonly [
  name: string,
  method: string,
  headers: (stored: StoredObject) => Headers,
  expected: number
]

/** Cases with a list of one subscription. */
const onLists: ReadonlyArray<Row> = [
  ["If-None-Match of the current timestamp", "GET", (s) => ({ "if-none-match": etag(s) }), 304],
  ["If-None-Match of the current timestamp", "HEAD", (s) => ({ "if-none-match": etag(s) }), 304],
  ["If-None-Match of an older timestamp", "GET", (s) => ({ "if-none-match": etag(s, -1) }), 200],
  ["If-None-Match of a newer timestamp", "GET", (s) => ({ "if-none-match": etag(s, 1) }), 200],
  ["If-None-Match: *", "GET", () => ({ "if-none-match": "*" }), 304],
  ["If-None-Match: *", "HEAD", () => ({ "if-none-match": "*" }), 304],
  ["If-None-Match: *", "DELETE", () => ({ "if-none-match": "*" }), 412],
  ["If-None-Match of the current timestamp", "DELETE", (s) => ({ "if-none-match": etag(s) }), 412],
  ["If-None-Match of another timestamp", "DELETE", (s) => ({ "if-none-match": etag(s, 1) }), 200],
  ["a weak tag in If-None-Match", "GET", (s) => ({ "if-none-match": weakTag(s) }), 304],
  ["a weak tag in If-Match", "DELETE", (s) => ({ "if-match": weakTag(s) }), 412],
  [
    "one of many tags in If-None-Match",
    "GET",
    (s) => ({ "if-none-match": among(weakTag(s)) }),
    304
  ],
  ["no tag of ours in If-None-Match", "GET", () => ({ "if-none-match": among('"1"') }), 200],
  ["one of many tags in If-Match", "DELETE", (s) => ({ "if-match": among(etag(s)) }), 200],
  ["no tag of ours in If-Match", "DELETE", () => ({ "if-match": among('"1"') }), 412],
  [
    "another spelling of the number",
    "GET",
    (s) => ({ "if-none-match": `"0${s.last_modified}"` }),
    200
  ],
  [
    "both headers, of which If-Match fails",
    "GET",
    (s) => ({ "if-match": '"1"', "if-none-match": etag(s) }),
    412
  ],
  ["If-Match of the current timestamp", "GET", (s) => ({ "if-match": etag(s) }), 200],
  ["If-Match of the current timestamp", "DELETE", (s) => ({ "if-match": etag(s) }), 200],
  ["If-Match of an older timestamp", "GET", (s) => ({ "if-match": etag(s, -1) }), 412],
  ["If-Match of a newer timestamp", "GET", (s) => ({ "if-match": etag(s, 1) }), 412],
  ["If-Match of an older timestamp", "DELETE", (s) => ({ "if-match": etag(s, -1) }), 412],
  ["If-Match: *", "GET", () => ({ "if-match": "*" }), 200],
  ["If-Match: *", "DELETE", () => ({ "if-match": "*" }), 200]
]

const onObjects: ReadonlyArray<Row> = [
  ["If-None-Match of the current timestamp", "GET", (s) => ({ "if-none-match": etag(s) }), 304],
  ["If-None-Match of the current timestamp", "HEAD", (s) => ({ "if-none-match": etag(s) }), 304],
  ["If-None-Match of another timestamp", "GET", (s) => ({ "if-none-match": etag(s, 1) }), 200],
  ["If-None-Match: *", "GET", () => ({ "if-none-match": "*" }), 304],
  ["If-None-Match: *", "PUT", () => ({ "if-none-match": "*" }), 412],
  ["If-None-Match: *", "DELETE", () => ({ "if-none-match": "*" }), 412],
  ["If-None-Match of the current timestamp", "PUT", (s) => ({ "if-none-match": etag(s) }), 412],
  ["If-None-Match of another timestamp", "PUT", (s) => ({ "if-none-match": etag(s, -1) }), 200],
  ["a weak tag in If-None-Match", "GET", (s) => ({ "if-none-match": weakTag(s) }), 304],
  ["a weak tag in If-None-Match", "PUT", (s) => ({ "if-none-match": weakTag(s) }), 412],
  ["a weak tag in If-Match", "PUT", (s) => ({ "if-match": weakTag(s) }), 412],
  ["one of many tags in If-Match", "PUT", (s) => ({ "if-match": among(etag(s)) }), 200],
  ["If-Match of the current timestamp", "GET", (s) => ({ "if-match": etag(s) }), 200],
  ["If-Match of the current timestamp", "PUT", (s) => ({ "if-match": etag(s) }), 200],
  ["If-Match of the current timestamp", "DELETE", (s) => ({ "if-match": etag(s) }), 200],
  ["If-Match of an older timestamp", "PUT", (s) => ({ "if-match": etag(s, -1) }), 412],
  ["If-Match of a newer timestamp", "PUT", (s) => ({ "if-match": etag(s, 1) }), 412],
  ["If-Match of an older timestamp", "DELETE", (s) => ({ "if-match": etag(s, -1) }), 412],
  ["If-Match of a newer timestamp", "GET", (s) => ({ "if-match": etag(s, 1) }), 412],
  ["If-Match: *", "PUT", () => ({ "if-match": "*" }), 200],
  ["If-Match: *", "DELETE", () => ({ "if-match": "*" }), 200],
  [
    "If-Modified-Since of the future",
    "GET",
    () => ({ "if-modified-since": "Fri, 01 Jan 2100 00:00:00 GMT" }),
    200
  ],
  [
    "If-Unmodified-Since of the past",
    "PUT",
    () => ({ "if-unmodified-since": "Thu, 01 Jan 1970 00:00:00 GMT" }),
    200
  ]
]

const onPosts: ReadonlyArray<
  readonly [
    name: string,
    subscription: string,
    headers: (stored: StoredObject) => Headers,
    expected: number
  ]
> = [
  ["of a new one with If-Match of the list", "b", (s) => ({ "if-match": etag(s) }), 201],
  ["of a new one with If-Match of an older list", "b", (s) => ({ "if-match": etag(s, -1) }), 412],
  ["of a new one with If-Match: *", "b", () => ({ "if-match": "*" }), 201],
  ["of a new one with If-None-Match: *", "b", () => ({ "if-none-match": "*" }), 201],
  ["of a new one with If-None-Match of the list", "b", (s) => ({ "if-none-match": etag(s) }), 201],
  ["of a stored one with If-Match of it, weak", "a", (s) => ({ "if-match": weakTag(s) }), 412],
  ["of a stored one with If-None-Match: *", "a", () => ({ "if-none-match": "*" }), 412],
  ["of a stored one with If-Match of it", "a", (s) => ({ "if-match": etag(s) }), 200],
  ["of a stored one with If-Match of an older one", "a", (s) => ({ "if-match": etag(s, -1) }), 412]
]

const expectedOf =
  (status: number, existing: boolean, method: string) =>
  (_: Api, given: StoredObject): Expected =>
    status === 304
      ? unchanged(given)
      : status === 412
        ? modified(given, existing && method !== "HEAD")
        : { status }

export const preconditions: ReadonlyArray<Case> = [
  ...onLists.map(([name, method, headers, status]) =>
    define<StoredObject>({
      name: `responds to ${method} of a list with ${name} by ${status}`,
      given: stored,
      request: list(method, headers),
      expected: expectedOf(status, false, method),
      also: ({ json }) => {
        if (status === 412) expect(json.details).toBeUndefined()
      }
    })
  ),
  ...onObjects.map(([name, method, headers, status]) =>
    define<StoredObject>({
      name: `responds to ${method} of a subscription with ${name} by ${status}`,
      given: stored,
      request: object(method, headers),
      expected: expectedOf(status, true, method)
    })
  ),
  ...onPosts.map(([name, subscription, headers, status]) =>
    define<StoredObject>({
      name: `responds to POST ${name} by ${status}`,
      given: stored,
      request: list("POST", headers, subscription),
      expected: expectedOf(status, subscription === "a", "POST")
    })
  ),
  ...["GET", "DELETE"].map((method) =>
    define({
      name: `lets 404 win over If-Match on ${method}`,
      request: { method, path: "/subscriptions/abc", headers: { "if-match": '"1"' } },
      expected: { status: 404, errno: 110 }
    })
  ),
  ...['"1"', "*"].map((tag) =>
    define<StoredObject>({
      name: `refuses PUT of a missing subscription with If-Match: ${tag}`,
      given: async (api) => {
        const one = await api.stored()
        return { ...one, last_modified: await api.removed(one.id) }
      },
      request: object("PUT", () => ({ "if-match": tag })),
      expected: (_, given) => modified(given, false),
      also: ({ json }) => expect(json.details).toBeUndefined()
    })
  ),
  define<StoredObject>({
    name: "creates over a tombstone with If-None-Match: *",
    given: async (api) => {
      const one = await api.stored()
      await api.removed(one.id)
      return one
    },
    request: object("PUT", () => ({ "if-none-match": "*" })),
    expected: { status: 201 }
  }),
  ...bad.flatMap((tag) =>
    ["If-Match", "If-None-Match"].map((name) =>
      define({
        name: `refuses ${name}: ${tag === "" ? "(empty)" : tag.slice(0, 20)}`,
        request: { method: "GET", path: "/subscriptions", headers: { [name]: tag } },
        expected: { status: 400, errno: 107, details: [`header:${name}`] }
      })
    )
  ),
  define<StoredObject>({
    name: "says why a weak tag fails in If-Match",
    given: stored,
    request: list("DELETE", (one) => ({ "if-match": weakTag(one) })),
    expected: { status: 412, message: /^A tag that begins with W\/.* send the ETag without W\// }
  }),
  define<StoredObject>({
    name: "takes a weak tag for the timestamp since which changes are asked for",
    given: stored,
    request: (_, one) => ({ method: "GET", path: `/subscriptions?_since=${weakTag(one)}` }),
    expected: { status: 200, body: { data: [] } }
  }),
  define<StoredObject>({
    name: "does not write when the precondition fails",
    given: stored,
    request: list("DELETE", () => ({ "if-match": '"1"' })),
    expected: (_, given) => modified(given, false),
    also: async (_, api) => expect((await api.list()).json.data).toHaveLength(1)
  })
]
