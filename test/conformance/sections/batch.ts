// Contract 5.6: batches that the server refuses.
import { expect } from "vitest"
import type { Request } from "../api.ts"
import { type Case, define } from "../table.ts"

export const batch = (
  requests: ReadonlyArray<unknown>,
  rest: Readonly<Record<string, unknown>> = {}
): Request => ({
  method: "POST",
  path: "/batch",
  body: { ...rest, requests }
})

const bad: ReadonlyArray<readonly [name: string, body: unknown, details: ReadonlyArray<string>]> = [
  ["without requests", {}, ["body:requests"]],
  ["of requests that are no list", { requests: {} }, ["body:requests"]],
  ["of requests that are no objects", { requests: [1] }, ["body:requests.0"]],
  ["with a key it does not know", { requests: [], other: 1 }, ["body:"]],
  ["with an entry without path", { requests: [{ method: "GET" }] }, ["body:requests.0.path"]],
  [
    "with a path that does not begin with a slash",
    { requests: [{ path: "subscriptions" }] },
    ["body:requests.0.path"]
  ],
  [
    "with a path that is no text",
    { requests: [{ path: "/" }, { path: 3 }] },
    ["body:requests.1.path"]
  ],
  [
    "with an unknown method",
    { requests: [{ path: "/", method: "FOO" }] },
    ["body:requests.0.method"]
  ],
  [
    "with a method in small letters",
    { requests: [{ path: "/", method: "get" }] },
    ["body:requests.0.method"]
  ],
  ["with OPTIONS", { requests: [{ path: "/", method: "OPTIONS" }] }, ["body:requests.0.method"]],
  [
    "with a header that is no text",
    { requests: [{ path: "/", headers: { a: 1 } }] },
    ["body:requests.0.headers.a"]
  ],
  [
    "with headers that are a list",
    { requests: [{ path: "/", headers: [] }] },
    ["body:requests.0.headers"]
  ],
  ["with a body that is a list", { requests: [{ path: "/", body: [] }] }, ["body:requests.0.body"]],
  [
    "with a body that is a text",
    { requests: [{ path: "/", body: "x" }] },
    ["body:requests.0.body"]
  ],
  ["with an entry of unknown keys", { requests: [{ path: "/", other: 1 }] }, ["body:requests.0"]],
  ["with defaults of unknown keys", { defaults: { other: 1 }, requests: [] }, ["body:defaults"]],
  ["with defaults that are a list", { defaults: [], requests: [] }, ["body:defaults"]],
  [
    "of 26 requests",
    { requests: Array.from({ length: 26 }, () => ({ path: "/" })) },
    ["body:requests"]
  ],
  [
    "with a path longer than a socket takes",
    { requests: [{ path: "/" }, { path: `/subscriptions?${"a=1&".repeat(20_000)}` }] },
    ["body:requests.1"]
  ],
  [
    "with a path of 100,000 slashes",
    { requests: [{ path: `/${"/".repeat(100_000)}x` }] },
    ["body:requests.0"]
  ],
  [
    "with headers longer than a socket takes",
    { requests: [{ path: "/", headers: { a: "x".repeat(9_000), b: "x".repeat(9_000) } }] },
    ["body:requests.0"]
  ],
  [
    "with 101 headers",
    {
      requests: [
        {
          path: "/",
          headers: Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`h${i}`, 1]))
        }
      ]
    },
    ["body:requests.0.headers"]
  ],
  [
    "with a header of two lines",
    { requests: [{ path: "/", headers: { a: "b\r\nc: d" } }] },
    ["body:requests.0"]
  ],
  [
    "with a header whose name no socket takes",
    { requests: [{ path: "/", headers: { "a b": "c" } }] },
    ["body:requests.0"]
  ],
  ["within a batch", { requests: [{ path: "/batch", method: "POST" }] }, ["body:requests"]],
  ["within a batch, with the version", { requests: [{ path: "/v1/batch" }] }, ["body:requests"]],
  ["within a batch, behind a redirect", { requests: [{ path: "/batch//" }] }, ["body:requests"]],
  ["within a batch, in disguise", { requests: [{ path: "/b%61tch?x" }] }, ["body:requests"]]
]

export const batches: ReadonlyArray<Case> = [
  ...bad.map(([name, body, details]) =>
    define({
      name: `refuses a batch ${name}`,
      request: { method: "POST", path: "/batch", body },
      expected: { status: 400, errno: 109, details }
    })
  ),
  ...["1", "{}"].map((entry) =>
    define({
      name: `refuses a batch of as many ${entry} as its bytes allow`,
      request: {
        ...batch([]),
        body: `{"requests":[${Array(Math.floor(400_000 / (entry.length + 1))).fill(entry)}]}`
      },
      expected: { status: 400, errno: 109 }
    })
  ),
  define({
    name: "refuses a batch of as many unknown keys as its bytes allow, soon",
    given: async () => performance.now(),
    request: {
      ...batch([]),
      body: JSON.stringify(
        Object.fromEntries(Array.from({ length: 30_000 }, (_, i) => [`k${i}`, 1]))
      )
    },
    expected: { status: 400, errno: 109, details: ["body:"] },
    also: (_, __, began) => expect(performance.now() - (began as number)).toBeLessThan(5_000)
  }),
  define({
    name: "refuses defaults that make much of a batch, soon",
    given: async () => performance.now(),
    request: {
      ...batch([]),
      body: JSON.stringify({
        defaults: {
          path: "/",
          headers: Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`h${i}`, "x"]))
        },
        requests: Array(25).fill({ headers: {} })
      })
    },
    expected: { status: 400, errno: 109, details: ["body:defaults.headers"] },
    also: (_, __, began) => expect(performance.now() - began).toBeLessThan(5_000)
  }),
  define({
    name: "refuses a batch that is no JSON by its type",
    request: {
      method: "POST",
      path: "/batch",
      body: '{"requests":[]}',
      headers: { "content-type": "text/plain" }
    },
    expected: { status: 415, errno: 107 }
  })
]
