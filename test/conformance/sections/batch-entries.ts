// Contract 5.6: the entries of a batch, their defaults and their responses.
import { expect } from "vitest"
import type { Api } from "../api.ts"
import { type Case, define } from "../table.ts"
import { batch } from "./batch.ts"

export const statuses = (json: { responses: ReadonlyArray<{ status: number }> }) =>
  json.responses.map(({ status }) => status)

export const create = (api: Api, name: string, extra: Readonly<Record<string, unknown>> = {}) => ({
  method: "POST",
  path: "/subscriptions",
  body: { data: api.subscription(name, extra) }
})

export const batchEntries: ReadonlyArray<Case> = [
  define({
    name: "responds to an empty batch",
    request: batch([]),
    expected: { status: 200, exactly: { responses: [] } }
  }),
  define({
    name: "needs nobody to be somebody, but its entries may",
    request: { ...batch([{ path: "/" }, { path: "/subscriptions" }]), as: null },
    expected: { status: 200 },
    also: ({ json }, { target }) => {
      expect(statuses(json)).toEqual([200, 401])
      expect(json.responses[1].body).toMatchObject({ code: 401, errno: 104 })
      expect(json.responses[1].headers["WWW-Authenticate"]).toBe(target.login.challenge)
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
    request: {
      ...batch([
        { path: "/subscriptions" },
        { path: "/subscriptions", headers: { "IF-MATCH": "*" } }
      ]),
      headers: { "if-match": '"1"' }
    },
    expected: { status: 200 },
    also: ({ json }) => expect(statuses(json)).toEqual([412, 200])
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
  })
]
