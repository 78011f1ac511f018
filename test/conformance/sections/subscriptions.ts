// Contract 3.3 to 3.5: timestamps, and the methods of subscriptions.
import { expect } from "vitest"
import { keys, otherKeys, type StoredObject } from "../api.ts"
import { type Case, define } from "../table.ts"

/** An endpoint and the id it must get. */
const known = {
  endpoint: "https://push.example.com/a",
  id: "12eccec801bb95c808b11cff317fdf759e0a3119b6922d7a9057940d14d3c132"
}

const put = (id: string, data: unknown, headers = {}) => ({
  method: "PUT",
  path: `/subscriptions/${id}`,
  body: { data },
  headers
})
const post = (data: unknown) => ({ method: "POST", path: "/subscriptions", body: { data } })
const stamped = (timestamp: number) => ({
  ETag: `"${timestamp}"`,
  "Last-Modified": new Date(timestamp).toUTCString()
})

export const subscriptions: ReadonlyArray<Case> = [
  define<StoredObject>({
    name: "returns what is stored when the endpoint is posted again, and changes nothing",
    given: (api) => api.stored(),
    request: (api) => post({ ...api.subscription("a", { more: 1 }), keys: otherKeys }),
    expected: (_, stored) => ({
      status: 200,
      exactly: { data: stored },
      headers: stamped(stored.last_modified)
    }),
    also: async (_, api, stored) =>
      expect((await api.list()).headers.etag).toBe(`"${stored.last_modified}"`)
  }),
  define({
    name: "keeps the lists of two users apart",
    given: (api) => api.stored("a", {}, `${api.me}2`),
    request: (api) => post(api.subscription()),
    expected: { status: 201 },
    also: async (_, api) => expect((await api.list()).json.data).toHaveLength(1)
  }),
  define<StoredObject>({
    name: "shows one subscription",
    given: (api) => api.stored("a", { more: { deep: [1] } }),
    request: (_, { id }) => ({ method: "GET", path: `/subscriptions/${id}` }),
    expected: (_, stored) => ({
      status: 200,
      exactly: { data: stored },
      headers: { ...stamped(stored.last_modified), "Cache-Control": "no-cache, no-store" }
    })
  }),
  define<StoredObject>({
    name: "responds to HEAD of one subscription with the headers of GET",
    given: (api) => api.stored(),
    request: (_, { id }) => ({ method: "HEAD", path: `/subscriptions/${id}` }),
    expected: (_, stored) => ({
      status: 200,
      headers: { ...stamped(stored.last_modified), "Content-Length": /^\d+$/ }
    })
  }),
  define<StoredObject>({
    name: "does not show one user's subscription to another",
    given: (api) => api.stored("a", {}, `${api.me}2`),
    request: (_, { id }) => ({ method: "GET", path: `/subscriptions/${id}` }),
    expected: (_, { id }) => ({
      status: 404,
      errno: 110,
      body: { details: { id, resource_name: "subscription" } }
    })
  }),
  ...["GET", "HEAD", "DELETE"].map((method) =>
    define({
      name: `does not know ${method} of an unknown id`,
      request: { method, path: "/subscriptions/abc" },
      expected: { status: 404 }
    })
  ),
  define({
    name: "has no message for an unknown id",
    request: { method: "GET", path: "/subscriptions/abc" },
    expected: { status: 404, errno: 110, body: { error: "Not Found" } },
    also: ({ json }) => expect(json.message).toBeUndefined()
  }),
  ...["_a", "a%20b", "-a", "%C3%A4", "a.b"].flatMap((id) =>
    ["GET", "DELETE"].map((method) =>
      define({
        name: `refuses ${method} of the impossible id ${id}`,
        request: { method, path: `/subscriptions/${id}` },
        expected: { status: 400, errno: 107, details: ["path:null"] }
      })
    )
  ),
  define<StoredObject>({
    name: "replaces all of a subscription on PUT, and always moves the timestamp",
    given: (api) => api.stored("a", { more: 1 }),
    request: (api, { id }) => put(id, { ...api.subscription(), keys: otherKeys }),
    expected: { status: 200 },
    also: ({ json: { data } }, _, stored) => {
      expect(data).toEqual({
        ...stored,
        keys: otherKeys,
        more: undefined,
        last_modified: data.last_modified
      })
      expect(data.last_modified).toBeGreaterThan(stored.last_modified)
    }
  }),
  define<StoredObject>({
    name: "moves the timestamp on a PUT that changes nothing",
    given: (api) => api.stored(),
    request: (api, { id }) => put(id, api.subscription()),
    expected: { status: 200 },
    also: ({ headers, json: { data } }, _, stored) => {
      expect(data.last_modified).toBeGreaterThan(stored.last_modified)
      expect(headers.etag).toBe(`"${data.last_modified}"`)
    }
  }),
  define({
    name: "creates on PUT of a new id",
    request: put(known.id, { endpoint: known.endpoint, keys }),
    expected: { status: 201 }
  }),
  define({
    name: "refuses PUT below an id that the endpoint does not have",
    request: (api) => put("abc", api.subscription()),
    expected: { status: 400, errno: 109, details: ["body:id"], message: /^The id/ }
  }),
  define({
    name: "refuses PUT of a body with another id",
    request: put(known.id, { endpoint: known.endpoint, keys, id: "abc" }),
    expected: { status: 400, errno: 109, details: ["body:id"] }
  }),
  define({
    name: "refuses PUT below an impossible id",
    request: (api) => put("_a", api.subscription()),
    expected: { status: 400, errno: 107, details: ["path:null"] }
  }),
  define({
    name: "judges the body of a PUT before its id",
    request: put("_a", {}),
    expected: { status: 400, errno: 109 }
  }),
  define<StoredObject>({
    name: "removes one and says when",
    given: (api) => api.stored(),
    request: (_, { id }) => ({ method: "DELETE", path: `/subscriptions/${id}` }),
    expected: { status: 200 },
    also: async ({ headers, json: { data } }, api, stored) => {
      expect(data).toEqual({ id: stored.id, last_modified: data.last_modified, deleted: true })
      expect(data.last_modified).toBeGreaterThan(stored.last_modified)
      expect(headers.etag).toBe(`"${data.last_modified}"`)
      expect((await api.list()).headers.etag).toBe(headers.etag)
    }
  }),
  define<StoredObject>({
    name: "does not know what was removed",
    given: async (api) => {
      const stored = await api.stored()
      await api.removed(stored.id)
      return stored
    },
    request: (_, { id }) => ({ method: "DELETE", path: `/subscriptions/${id}` }),
    expected: { status: 404, errno: 110 }
  }),
  define<StoredObject>({
    name: "creates again over a tombstone, which is then gone",
    given: async (api) => {
      const stored = await api.stored()
      await api.removed(stored.id)
      return stored
    },
    request: (api, { id }) => put(id, api.subscription()),
    expected: { status: 201 },
    also: async (_, api) => {
      const { json } = await api.list("?_since=0")
      expect(json.data).toHaveLength(1)
      expect(json.data[0].deleted).toBeUndefined()
    }
  }),
  define({
    name: "ignores a DELETE's wish for a timestamp, but not nonsense",
    given: (api) => api.stored(),
    request: (_, stored) => ({
      method: "DELETE",
      path: `/subscriptions/${(stored as StoredObject).id}?last_modified=abc`
    }),
    expected: { status: 400, errno: 107, details: ["querystring:last_modified"] }
  }),
  define({
    name: "removes a whole list, each with a timestamp of its own, newest first",
    given: async (api) => [await api.stored("a"), await api.stored("b"), await api.stored("c")],
    request: { method: "DELETE", path: "/subscriptions" },
    expected: { status: 200, headers: { "Total-Records": "3" } },
    also: async ({ headers, json: { data } }, api, given) => {
      const stored = given as ReadonlyArray<StoredObject>
      expect(data.map(({ id }: StoredObject) => id)).toEqual(stored.map(({ id }) => id).reverse())
      const times: ReadonlyArray<number> = data.map(
        ({ last_modified }: StoredObject) => last_modified
      )
      expect(new Set(times).size).toBe(3)
      expect([...times].sort()).toEqual(times)
      expect(times[0]).toBeGreaterThan(stored[2]!.last_modified)
      expect(headers.etag).toBe(`"${times[2]}"`)
      for (const each of data) expect(each.deleted).toBe(true)
      expect((await api.list()).json.data).toEqual([])
    }
  }),
  define<number>({
    name: "removes nothing from an empty list and keeps its timestamp",
    given: async (api) => api.removed((await api.stored()).id),
    request: { method: "DELETE", path: "/subscriptions" },
    expected: (_, timestamp) => ({
      status: 200,
      exactly: { data: [] },
      headers: { ...stamped(timestamp), "Total-Records": "0" }
    })
  }),
  define({
    name: "gives a list without history a timestamp that stays",
    given: async (api) => (await api.list()).headers.etag,
    request: { method: "GET", path: "/subscriptions" },
    expected: (_, etag) => ({
      status: 200,
      exactly: { data: [] },
      headers: { ETag: etag as string }
    })
  }),
  define({
    name: "gives every change of one user a greater timestamp, however many come at once",
    given: async (api) => {
      const responses = await Promise.all(
        Array.from({ length: 20 }, (_, i) => api.send(post(api.subscription(`n${i}`))))
      )
      return responses.map(({ json, status }) => {
        expect(status).toBe(201)
        return json.data.last_modified as number
      })
    },
    request: { method: "GET", path: "/subscriptions" },
    expected: { status: 200, headers: { "Total-Records": "20" } },
    also: ({ headers }, _, given) => {
      const times = given as ReadonlyArray<number>
      expect(new Set(times).size).toBe(20)
      expect(headers.etag).toBe(`"${Math.max(...times)}"`)
    }
  }),
  define({
    name: "shows a write to the very next read",
    given: async (api) => {
      for (let i = 0; i < 10; i++) {
        const { id } = await api.stored(`n${i}`)
        const { json } = await api.list()
        expect(json.data[0].id).toBe(id)
      }
    },
    request: { method: "HEAD", path: "/subscriptions" },
    expected: { status: 200, headers: { "Total-Records": "10" } }
  }),
  define({
    name: "stores no more than a user may hold",
    given: async (api) => {
      for (let i = 0; i < 50; i++) await api.stored(`n${i}`)
    },
    request: (api) => post(api.subscription("one-more")),
    expected: { status: 429, errno: 117 }
  })
]
