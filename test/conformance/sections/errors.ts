// Contract 2: error responses; bodies, media types, limits.
import { expect } from "vitest"
import { type Case, define } from "../table.ts"

const json = { "content-type": "application/json" }
const chunked = { ...json, "transfer-encoding": "chunked" }
const post = (body: unknown, headers = {}) => ({
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

const accepted = [
  "*/*",
  "application/*",
  "application/json",
  "text/html, application/json;q=0.1",
  "application/json; charset=utf-8",
  "nonsense",
  "text/html, */*;q=0.1"
]
const refused = ["text/html", "application/xml", "application/json;q=0", "*/*;q=0", "image/*", ""]

export const errors: ReadonlyArray<Case> = [
  ...notJson.map(([name, body]) =>
    define({
      name: `refuses ${name} for a body, and says it twice`,
      request: post(body, json),
      expected: { status: 400, errno: 109, details: ["body:", "body:"], message: /^Invalid JSON/ },
      also: ({ json: { details } }) => expect(details[1].description).toBe("Required")
    })
  ),
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
  }),
  ...[
    "text/plain",
    "application/x-www-form-urlencoded",
    "application/merge-patch+json",
    "nonsense"
  ].map((type) =>
    define({
      name: `does not take ${type} on POST`,
      request: (api) => ({
        ...post(JSON.stringify({ data: api.subscription() }), { "content-type": type })
      }),
      expected: {
        status: 415,
        errno: 107,
        details: ["header:Content-Type"],
        body: { error: "Invalid parameters" }
      }
    })
  ),
  define({
    name: "does not take text on PUT",
    request: {
      method: "PUT",
      path: "/subscriptions/abc",
      body: "{}",
      headers: { "content-type": "text/plain" }
    },
    expected: { status: 415 }
  }),
  ...["application/json; charset=latin1", "Application/JSON", "application/json"].map((type) =>
    define({
      name: `takes ${type} for JSON`,
      request: (api) => ({
        ...post(JSON.stringify({ data: api.subscription() }), { "content-type": type })
      }),
      expected: { status: 201 }
    })
  ),
  define({
    name: "takes a body without a type for JSON",
    request: (api) => post(JSON.stringify({ data: api.subscription() })),
    expected: { status: 201 }
  }),
  ...accepted.map((accept) =>
    define({
      name: `serves who accepts ${accept}`,
      request: { method: "GET", path: "/subscriptions", headers: { accept } },
      expected: { status: 200 }
    })
  ),
  ...refused.map((accept) =>
    define({
      name: `does not serve a list to who accepts ${accept === "" ? "nothing" : accept}`,
      request: { method: "GET", path: "/subscriptions", as: null, headers: { accept } },
      expected: {
        status: 406,
        errno: 107,
        details: ["header:Accept"],
        body: { error: "Invalid parameters" }
      }
    })
  ),
  define({
    name: "looks at Accept before Content-Type",
    request: post("x", { accept: "text/html", "content-type": "text/plain" }),
    expected: { status: 406 }
  }),
  define({
    name: "looks at Content-Type before the caller",
    request: { ...post("x", { "content-type": "text/plain" }), as: null },
    expected: { status: 415 }
  }),
  define({
    name: "looks at the caller before the body",
    request: { ...post("{nonsense", json), as: null },
    expected: { status: 401, errno: 104 }
  }),
  define({
    name: "does not mind Accept on channels",
    given: (api) => api.registered(),
    request: (api) => ({
      method: "GET",
      path: `/channels/${api.channel}`,
      headers: { accept: "text/html" }
    }),
    expected: { status: 200 }
  }),
  define({
    name: "refuses a body that is too large",
    request: (api) => post({ data: api.subscription("a", { more: "x".repeat(20_000) }) }),
    expected: { status: 413, errno: 113 }
  }),
  // A body without Content-Length is valid (RFC 9112 section 7.1): no 411.
  define({
    name: "takes a body in chunks",
    request: (api) => post(JSON.stringify({ data: api.subscription("a") }), chunked),
    expected: { status: 201 }
  }),
  define({
    name: "refuses a body in chunks that becomes too large",
    request: (api) =>
      post(JSON.stringify({ data: api.subscription("a", { more: "x".repeat(20_000) }) }), chunked),
    expected: { status: 413, errno: 113 }
  }),
  ...["GET", "DELETE"].flatMap((method) =>
    ["/subscriptions", "/subscriptions/abc"].map((path) =>
      define({
        name: `refuses a body that is too large to look into with ${method} ${path}`,
        request: { method, path, body: `"${"x".repeat(20_000)}"`, headers: json },
        expected: { status: 413, errno: 113 }
      })
    )
  ),
  define({
    name: "refuses a body that is too large once it is written down",
    request: (api) =>
      post(
        JSON.stringify({ data: api.subscription("a", { more: "numbers" }) }).replace(
          '"numbers"',
          `[${"1e20,".repeat(3_000)}1]`
        ),
        json
      ),
    expected: { status: 413, errno: 113 }
  }),
  define({
    name: "takes lists in lists up to a hundred deep, and filters by them",
    given: (api) => api.stored("a", { deep: JSON.parse("[".repeat(98) + "]".repeat(98)) }),
    request: {
      method: "GET",
      path: `/subscriptions?deep=${"[".repeat(98)}${"]".repeat(98)}&_sort=deep`
    },
    expected: { status: 200, headers: { "Total-Records": "1" } }
  }),
  define({
    name: "takes a filter that is nested without end for a text",
    given: (api) => api.stored("a", { deep: [[]] }),
    request: {
      method: "GET",
      path: `/subscriptions?deep=${"[".repeat(2_500)}${"]".repeat(2_500)}`
    },
    expected: { status: 200, headers: { "Total-Records": "0" } }
  }),
  define({
    name: "says so only to those who may ask",
    request: (api) => ({
      ...post({ data: api.subscription("a", { more: "x".repeat(20_000) }) }),
      as: null
    }),
    expected: { status: 401 }
  }),
  define({
    name: "gives every error body the keys of the contract in their order",
    request: { method: "GET", path: "/subscriptions?_limit=x" },
    expected: { status: 400 },
    also: ({ text }) =>
      expect(Object.keys(JSON.parse(text))).toEqual([
        "code",
        "errno",
        "error",
        "message",
        "details"
      ])
  })
]
