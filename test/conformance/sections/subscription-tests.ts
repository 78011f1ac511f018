// Contract 3.11: tests of subscriptions. The server of the cases delivers nothing, so that a test
// ends without a result.
import { expect } from "vitest"
import type { Request, StoredObject } from "../api.ts"
import { type Case, define } from "../table.ts"
import { accepted } from "./broadcasts.ts"

const test = (id: string, body?: unknown, headers: Record<string, string> = {}): Request => ({
  method: "POST",
  path: `/subscriptions/${id}/test`,
  headers,
  ...(body === undefined ? {} : { body })
})

export const subscriptionTests: ReadonlyArray<Case> = [
  define<StoredObject>({
    name: "accepts a test, and says so when there is no result for 10 s",
    given: (api) => api.stored(),
    request: (_, { id }) => test(id, { data: { hello: 1 } }),
    expected: (api) => ({
      status: 202,
      exactly: accepted.body,
      headers: { Location: new RegExp(`^${api.root}/broadcasts/[0-9]+$`) }
    }),
    also: async ({ headers }, api) => {
      const target = new URL(String(headers["location"])).pathname
      expect((await api.send({ method: "GET", target })).status).toBe(200)
      expect((await api.send({ method: "GET", target, as: `${api.me}2` })).status).toBe(404)
    }
  }),
  define({
    name: "pauses no test",
    given: async (api) => {
      const { id } = await api.stored()
      const { headers } = await api.send(test(id))
      return new URL(String(headers["location"])).pathname
    },
    request: (_, target) => ({ method: "PATCH", target, body: { data: { state: "paused" } } }),
    expected: { status: 409, errno: 124, body: { details: { state: "running" } } }
  }),
  define<StoredObject>({
    name: "tests no subscription of another user",
    given: (api) => api.stored("a", {}, `${api.me}2`),
    request: (_, { id }) => test(id),
    expected: { status: 404, errno: 110, body: { details: { resource_name: "subscription" } } }
  }),
  define<StoredObject>({
    name: "tests nothing that was removed",
    given: async (api) => {
      const stored = await api.stored()
      await api.removed(stored.id)
      return stored
    },
    request: (_, { id }) => test(id),
    expected: { status: 404, errno: 110 }
  }),
  define({
    name: "tests nothing below an impossible id",
    request: test("a.b"),
    expected: { status: 400, errno: 107, details: ["path:null"] }
  }),
  define<StoredObject>({
    name: "tests nothing for nobody",
    given: (api) => api.stored(),
    request: (_, { id }) => ({ ...test(id), as: null }),
    expected: { status: 401, errno: 104 }
  }),
  define<StoredObject>({
    name: "refuses a test that fits into no push",
    given: (api) => api.stored(),
    request: (_, { id }) => test(id, { data: { text: "x".repeat(3_990) } }),
    expected: { status: 413, error: "payload-too-large" }
  }),
  ...(
    [
      ["data that is a list", { data: [] }, "body:data"],
      ["other recipients", { to: { channels: ["news"] } }, "body:"]
    ] as const
  ).map(([name, body, detail]) =>
    define<StoredObject>({
      name: `refuses a test with ${name}`,
      given: (api) => api.stored(),
      request: (_, { id }) => test(id, body),
      expected: { status: 400, errno: 109, details: [detail] }
    })
  ),
  define<StoredObject>({
    name: "refuses a test that is not JSON",
    given: (api) => api.stored(),
    request: (_, { id }) => test(id, "text", { "content-type": "text/plain" }),
    expected: { status: 415, errno: 107 }
  })
]
