// Contract 2: error responses; bodies, media types, limits.
import { expect } from "vitest"
import { type Case, define } from "../table.ts"

export const json = { "content-type": "application/json" }
export const post = (body: unknown, headers = {}) => ({
  method: "POST",
  path: "/subscriptions",
  body,
  headers
})

const notJson: ReadonlyArray<readonly [name: string, body: string | Buffer]> = [
  ["nonsense", "{nonsense"],
  ["bytes that are no UTF-8", Buffer.from([0x7b, 0xff, 0x7d])],
  ["a byte order mark", Buffer.from([0xef, 0xbb, 0xbf, 0x7b, 0x7d])],
  ["white space", "   "],
  ["two texts", "{}{}"],
  ["lists in lists without end", `{"data":${"[".repeat(8_000)}${"]".repeat(8_000)}}`]
]

/** Values of a member of `data` that no reader of JSON in a browser would get as they were sent. */
const lossy: ReadonlyArray<readonly [json: string, why: RegExp]> = [
  ["1e400", /^Invalid JSON: the number 1e400 is too large$/],
  ["[-1e400]", /the number -1e400 is too large/],
  ["1e-400", /too small/],
  ["738529527931269425", /would become 738529527931269400: write it as a string/],
  ['{"a":1,"\\u0061":2}', /the name "a" stands twice/]
]

/** The JSON text of a body whose `data` has this value as `n`, and other members before it. */
const withN = (before: string, value: string) => `{${before}"data":{"n":${value}}}`

/** Every request with data that is stored or handed on. */
const carriers: ReadonlyArray<
  readonly [name: string, method: string, path: string, bodyOf: (value: string) => string]
> = [
  ["a subscription", "POST", "/subscriptions", (value) => withN("", value)],
  ["a PUT of a subscription", "PUT", "/subscriptions/abc", (value) => withN("", value)],
  ["a renewal", "POST", "/subscriptions/replace", (value) => withN('"renewal":"a",', value)],
  ["a broadcast", "POST", "/channels/lossy", (value) => withN("", value)],
  ["a variant", "POST", "/channels/lossy", (value) => `{"data_by_locale":{"de":{"n":${value}}}}`],
  [
    "a broadcast to others",
    "POST",
    "/broadcasts",
    (value) => withN('"to":{"channels":["lossy"]},', value)
  ],
  ["a test", "POST", "/subscriptions/abc/test", (value) => withN("", value)],
  ["a change of a broadcast", "PATCH", "/broadcasts/1", (value) => `{"data":{"data":${value}}}`],
  [
    "an entry of a batch",
    "POST",
    "/batch",
    (value) => `{"requests":[{"path":"/subscriptions","body":${withN("", value)}}]}`
  ]
]

const scalars = ["3", '"text"', "null", "true"]

const dataErrors: ReadonlyArray<
  readonly [name: string, body: unknown, details: ReadonlyArray<string>, message: string | RegExp]
> = [
  ["an empty object", {}, ["body:data"], "data in body: Required"],
  ["data that is null", { data: null }, ["body:data"], /^data in body: /],
  ["data that is a list", { data: [] }, ["body:data"], /^data in body: /],
  ["data that is a text", { data: "x" }, ["body:data"], /^data in body: /],
  ["a list for a body", [], ["body:"], /./],
  [
    "empty data",
    { data: {} },
    ["body:data.endpoint", "body:data.keys"],
    "data.endpoint in body: Required"
  ],
  [
    "a key beside data",
    { data: {}, other: 1 },
    ["body:", "body:data.endpoint", "body:data.keys"],
    /other/
  ],
  [
    "permissions, which user resources do not have",
    { permissions: {} },
    ["body:", "body:data"],
    /permissions/
  ]
]

export const errors: ReadonlyArray<Case> = [
  ...notJson.map(([name, body]) =>
    define({
      name: `refuses ${name} for a body, and says it twice`,
      request: post(body, json),
      expected: { status: 400, errno: 109, details: ["body:", "body:"], message: /^Invalid JSON/ },
      also: ({ json: { details } }) => expect(details[1].description).toBe("Required")
    })
  ),
  ...carriers.flatMap(([name, method, path, bodyOf]) =>
    lossy.map(([value, message]) =>
      define({
        name: `refuses ${name} with ${value}, which would not arrive as it was sent`,
        request: ({ target }) => ({
          method,
          path,
          as: target.publisher,
          body: bodyOf(value),
          headers: json
        }),
        expected: { status: 400, error: "invalid-body", details: ["body:", "body:"], message }
      })
    )
  ),
  define({
    name: "stores and returns numbers that are none too large, small or long",
    request: (api) =>
      post(
        JSON.stringify({ data: api.subscription("a") }).replace(
          '"data":{',
          '"data":{"n":[-0, 1e20, 738529527931269400, 0.1234567890123456789],'
        ),
        json
      ),
    expected: {
      status: 201,
      body: { data: { n: [0, 1e20, 738529527931269400, 0.12345678901234568] } }
    }
  }),
  ...scalars.map((body) =>
    define({
      name: `refuses the JSON text ${body} for a body`,
      request: post(body, json),
      expected: { status: 400, errno: 109, details: ["body:", "body:"] },
      also: ({ json: { details } }) => expect(details[1].description).toBe("Required")
    })
  ),
  ...dataErrors.map(([name, body, details, message]) =>
    define({
      name: `refuses ${name} on POST`,
      request: post(body),
      expected: { status: 400, errno: 109, details, message }
    })
  ),
  define({
    name: "refuses an empty body on POST",
    request: post("", json),
    expected: { status: 400, details: ["body:data"], message: "data in body: Required" }
  }),
  define({
    name: "refuses a missing body on POST",
    request: post(undefined),
    expected: { status: 400, details: ["body:data"] }
  }),
  define({
    name: "refuses a missing body on PUT",
    request: { method: "PUT", path: "/subscriptions/abc" },
    expected: { status: 400, errno: 109, details: ["body:data"] }
  }),
  define({
    name: "lists all errors at once, sorted by name, the first one in the message",
    request: (api) => ({
      ...post(
        { data: { endpoint: "nonsense", keys: { auth: 3 } }, x: 1 },
        { "if-match": "nonsense" }
      ),
      path: `/subscriptions?${api.channel}`
    }),
    expected: {
      status: 400,
      errno: 109,
      details: [
        "body:",
        "header:If-Match",
        "body:data.endpoint",
        "body:data.keys.auth",
        "body:data.keys.p256dh"
      ],
      message: /x/
    }
  }),
  define({
    name: "lists header and query errors of a list together, with errno 107",
    request: {
      method: "GET",
      path: "/subscriptions?_since=-1&_limit=x",
      headers: { "if-none-match": "x" }
    },
    expected: {
      status: 400,
      errno: 107,
      details: ["header:If-None-Match", "querystring:_limit", "querystring:_since"]
    }
  }),
  define({
    name: "names an error without name by its location only",
    request: { method: "GET", path: "/subscriptions/_bad" },
    expected: { status: 400, errno: 107, details: ["path:null"], message: /^path: / }
  }),
  define({
    name: "refuses a GET whose body claims to be JSON and is none",
    request: { method: "GET", path: "/subscriptions", body: "{nonsense", headers: json },
    expected: { status: 400, errno: 109 }
  }),
  define({
    name: "refuses a DELETE whose body is taken for JSON and is none",
    request: { method: "DELETE", path: "/subscriptions", body: "{nonsense" },
    expected: { status: 400, errno: 109 }
  }),
  define({
    name: "ignores a body of another type on GET",
    request: {
      method: "GET",
      path: "/subscriptions",
      body: "{nonsense",
      headers: { "content-type": "text/plain" }
    },
    expected: { status: 200 }
  })
]
