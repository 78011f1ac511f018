// Contract 5.6: batches.
import { expect } from "vitest"
import type { Api, Request } from "../api.ts"
import { type Case, define } from "../table.ts"

const batch = (
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

const statuses = (json: { responses: ReadonlyArray<{ status: number }> }) =>
  json.responses.map(({ status }) => status)

const create = (api: Api, name: string, extra: Readonly<Record<string, unknown>> = {}) => ({
  method: "POST",
  path: "/subscriptions",
  body: { data: api.subscription(name, extra) }
})

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
    expected: { status: 400, errno: 109, details: ["body:", "body:requests"] },
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
  }),
  define({
    name: "responds to an empty batch",
    request: batch([]),
    expected: { status: 200, exactly: { responses: [] } }
  }),
  define({
    name: "needs nobody to be somebody, but its entries may",
    request: { ...batch([{ path: "/" }, { path: "/subscriptions" }]), as: null },
    expected: { status: 200 },
    also: ({ json }) => {
      expect(statuses(json)).toEqual([200, 401])
      expect(json.responses[1].body).toMatchObject({ code: 401, errno: 104 })
      expect(json.responses[1].headers["WWW-Authenticate"]).toMatch(/^Basic/)
    }
  }),
  define({
    name: "responds in order, with path, status, headers and body",
    request: (api) =>
      batch([
        create(api, "a"),
        { path: "/subscriptions?_limit=1" },
        { method: "DELETE", path: "/subscriptions" },
        { path: "/v1/subscriptions" }
      ]),
    expected: { status: 200 },
    also: ({ json }) => {
      expect(statuses(json)).toEqual([201, 200, 200, 200])
      expect(json.responses.map(({ path }: { path: string }) => path)).toEqual(
        Array(4).fill("/v1/subscriptions")
      )
      expect(json.responses[1].body.data).toHaveLength(1)
      expect(json.responses[1].headers).toMatchObject({
        ETag: json.responses[0].headers.ETag,
        "Total-Records": "1"
      })
      expect(json.responses[3].body).toEqual({ data: [] })
      for (const response of json.responses)
        expect(Object.keys(response).sort()).toEqual(["body", "headers", "path", "status"])
    }
  }),
  define({
    name: "adds the version to a path that has none, and shows the path decoded",
    request: batch([{ path: "/channels/caf%C3%A9 ü" }, { path: "/v10/x" }, { path: "/v1foo" }]),
    expected: { status: 200 },
    also: ({ json }) => {
      expect(json.responses.map(({ path }: { path: string }) => path)).toEqual([
        "/v1/channels/café ü",
        "/v1/v10/x",
        "/v1/v1foo"
      ])
      expect(statuses(json)).toEqual([403, 404, 404])
    }
  }),
  define({
    name: "has no body for HEAD, and an empty text for 304",
    given: (api) => api.stored(),
    request: (_, stored) =>
      batch([
        { method: "HEAD", path: "/subscriptions" },
        {
          path: "/subscriptions",
          headers: { "If-None-Match": `"${(stored as { last_modified: number }).last_modified}"` }
        }
      ]),
    expected: { status: 200 },
    also: ({ json }) => {
      expect(statuses(json)).toEqual([200, 304])
      expect(json.responses.map(({ body }: { body: unknown }) => body)).toEqual(["", ""])
    }
  }),
  define({
    name: "puts defaults under what an entry says, in headers and body too",
    request: (api) =>
      batch(
        [
          { body: { data: { endpoint: api.subscription("x").endpoint } } },
          { method: "GET", path: "/subscriptions" },
          {}
        ],
        {
          defaults: {
            method: "POST",
            path: "/subscriptions",
            headers: { "X-A": "1" },
            body: { data: api.subscription("y") }
          }
        }
      ),
    expected: { status: 200 },
    also: ({ json }) => {
      expect(statuses(json)).toEqual([201, 200, 201])
      expect(json.responses[0].body.data.endpoint).toMatch(/x$/)
      expect(json.responses[2].body.data.endpoint).toMatch(/y$/)
    }
  }),
  define({
    name: "gives its headers to the entries, which may say otherwise in any case",
    request: (api) => ({
      ...batch([
        { path: "/subscriptions" },
        { path: "/subscriptions", headers: { "IF-MATCH": "*" } },
        {
          path: "/",
          headers: { AUTHORIZATION: `Basic ${Buffer.from(`${api.me}2`).toString("base64")}` }
        },
        { path: "/" }
      ]),
      headers: { "if-match": '"1"' }
    }),
    expected: { status: 200 },
    also: ({ json }, api) => {
      expect(statuses(json)).toEqual([412, 200, 200, 200])
      expect(json.responses[2].body.user.id).toBe(api.userId(`${api.me}2`))
      expect(json.responses[3].body.user.id).toBe(api.userId())
    }
  }),
  define({
    name: "follows a redirect once, with method and body",
    request: (api) => batch([{ ...create(api, "a"), path: "/subscriptions/" }, { path: "/v1" }]),
    expected: { status: 200 },
    also: ({ json }) => {
      expect(statuses(json)).toEqual([201, 200])
      expect(json.responses.map(({ path }: { path: string }) => path)).toEqual([
        "/v1/subscriptions",
        "/v1/"
      ])
    }
  }),
  define({
    name: "follows the redirect of an entry that names a host of its own",
    request: batch([
      { path: "/subscriptions/", headers: { Host: "a.example" } },
      { path: "/subscriptions/", headers: { Host: "a-very-long-name-indeed.example.org:65535" } }
    ]),
    expected: { status: 200 },
    also: ({ json }) => {
      expect(statuses(json)).toEqual([200, 200])
      expect(json.responses.map(({ path }: { path: string }) => path)).toEqual([
        "/v1/subscriptions",
        "/v1/subscriptions"
      ])
    }
  }),
  define({
    name: "calls a page within a batch a page",
    request: batch([
      { path: "/__api__", headers: { Accept: "text/html" } },
      { path: "/__metrics__" },
      { path: "/__api__" }
    ]),
    expected: { status: 200 },
    also: ({ json }) =>
      expect(
        json.responses.map(
          ({ headers }: { headers: Record<string, string> }) => headers["Content-Type"]
        )
      ).toEqual([
        "text/html; charset=UTF-8",
        "text/plain; version=0.0.4; charset=utf-8",
        "application/json; charset=UTF-8"
      ])
  }),
  define({
    name: "keeps the errors of an entry in its entry",
    request: (api) =>
      batch([
        { path: "/nothing" },
        { method: "PATCH", path: "/subscriptions" },
        { method: "TRACE", path: "/" },
        { method: "POST", path: "/subscriptions", body: {} },
        { path: "/subscriptions?_since=x" },
        { path: "/channels/%ff" },
        { path: "/subscriptions", headers: { Accept: "text/html" } },
        create(api, "a")
      ]),
    expected: { status: 200 },
    also: ({ json }) => expect(statuses(json)).toEqual([404, 405, 405, 400, 400, 400, 406, 201])
  }),
  define({
    name: "responds to 25 writes, each seen by the next read",
    request: (api) =>
      batch(
        Array.from({ length: 24 }, (_, i) => create(api, `n${i}`)).concat({
          method: "HEAD",
          path: "/subscriptions"
        } as never)
      ),
    expected: { status: 200 },
    also: ({ json }) => {
      expect(statuses(json)).toEqual([...Array(24).fill(201), 200])
      expect(json.responses[24].headers["Total-Records"]).toBe("24")
    }
  }),
  define({
    name: "reaches a channel whose name begins with batch",
    request: batch([
      { method: "PUT", path: "/channels/batch/registration" },
      { path: "/channels/batch" }
    ]),
    expected: { status: 200 },
    also: ({ json }) => expect(statuses(json)).toEqual([202, 200])
  }),
  define({
    name: "takes __proto__ for a name like any other, also of defaults",
    request: (api) => ({
      ...batch([]),
      body: `{"defaults":{"headers":{"__proto__":"a","If-Match":"\\"1\\""},
        "body":{"__proto__":{"data":1}}},
        "requests":[{"path":"/subscriptions","headers":{"if-match":"*","__proto__":"b"},
        "body":{"__proto__":{}}},
        {"path":"/subscriptions"},
        {"path":"/subscriptions","method":"POST","headers":{"if-match":"*"},
          "body":{"data":${JSON.stringify(api.subscription("a"))}}}]}`
    }),
    expected: { status: 200 },
    // The merged body has a key that a subscription must not have.
    also: ({ json }) => {
      expect(statuses(json)).toEqual([200, 412, 400])
      expect(json.responses[2].body.details[0].description).toBe("Unrecognised keys: __proto__")
    }
  }),
  define({
    name: "makes no further request when its response is full, and says so for each",
    given: async (api) => {
      for (const half of ["a", "b"]) {
        const names = Array.from({ length: 25 }, (_, i) => `${half}${i}`)
        await api.send(batch(names.map((name) => create(api, name, { x: "x".repeat(3_700) }))))
      }
    },
    request: batch([
      ...Array(24).fill({ path: "/subscriptions" }),
      { method: "DELETE", path: "/subscriptions" }
    ]),
    expected: { status: 200 },
    also: async ({ json, text }, api) => {
      expect(text.length).toBeLessThan(4_400_000)
      const made = statuses(json).filter((status) => status === 200).length
      expect(made).toBeGreaterThan(15)
      expect(statuses(json)).toEqual([...Array(made).fill(200), ...Array(25 - made).fill(413)])
      expect(json.responses[24]).toMatchObject({
        path: "/v1/subscriptions",
        body: { code: 413, errno: 113 }
      })
      expect((await api.list()).json.data).toHaveLength(50)
    }
  })
]
