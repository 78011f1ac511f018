// Contract 2.5 and 2.6: media types, and sizes of bodies.
import { expect } from "vitest"
import { type Case, define } from "../table.ts"
import { json, post } from "./errors.ts"

const chunked = { ...json, "transfer-encoding": "chunked" }
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

export const mediaTypes: ReadonlyArray<Case> = [
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
    expected: { status: 413, error: "body-too-large" }
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
    expected: { status: 413, error: "body-too-large" }
  }),
  ...["GET", "DELETE"].flatMap((method) =>
    ["/subscriptions", "/subscriptions/abc"].map((path) =>
      define({
        name: `refuses a body that is too large to look into with ${method} ${path}`,
        request: { method, path, body: `"${"x".repeat(20_000)}"`, headers: json },
        expected: { status: 413, error: "body-too-large" }
      })
    )
  ),
  ...[
    "/broadcasts",
    "/channels/news/broadcasts",
    "/broadcasts/0/pushes",
    "/dead",
    "/drafts"
  ].flatMap((path) => [
    define({
      name: `refuses a body that is too large to look into with GET ${path}`,
      request: ({ target }) => ({
        ...{ method: "GET", path, as: target.operator },
        ...{ body: `"${"x".repeat(20_000)}"`, headers: json }
      }),
      expected: { status: 413, error: "body-too-large" }
    }),
    define({
      name: `refuses a body that is no JSON with GET ${path}`,
      request: ({ target }) => ({
        ...{ method: "GET", path, as: target.operator },
        ...{ body: "{", headers: json }
      }),
      expected: { status: 400, errno: 109 }
    })
  ]),
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
    expected: { status: 413, error: "subscription-too-large" }
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
        "error_code",
        "error",
        "message",
        "details"
      ])
  })
]
