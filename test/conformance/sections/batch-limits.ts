// Contract 5.6: batches with many entries, unusual names, failing entries and large responses.
import { expect } from "vitest"
import { type Case, define } from "../table.ts"
import { batch } from "./batch.ts"
import { create, statuses } from "./batch-entries.ts"

export const batchLimits: ReadonlyArray<Case> = [
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
        body: { code: 413, error_code: "response-too-large" }
      })
      expect((await api.list()).json.data).toHaveLength(50)
    }
  })
]
