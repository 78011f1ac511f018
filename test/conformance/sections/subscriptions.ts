// Contract 3.3 to 3.5: timestamps, and the methods of subscriptions.
import { expect } from "vitest"
import { keys, otherKeys, type StoredObject } from "../api.ts"
import { type Case, define } from "../table.ts"

/** An endpoint and the id it must get. */
const known = {
  endpoint: "https://push.example.com/a",
  id: "12eccec801bb95c808b11cff317fdf759e0a3119b6922d7a9057940d14d3c132"
}

export const put = (id: string, data: unknown, headers = {}) => ({
  method: "PUT",
  path: `/subscriptions/${id}`,
  body: { data },
  headers
})
export const post = (data: unknown) => ({ method: "POST", path: "/subscriptions", body: { data } })
const replacing = (data: unknown, replaces: string) => ({
  ...post(data),
  body: { data, replaces }
})
const store = (method: string, id: string, data: unknown) =>
  method === "PUT" ? put(id, data) : post(data)
export const stamped = (timestamp: number) => ({
  ETag: `"${timestamp}"`,
  "Last-Modified": new Date(timestamp).toUTCString()
})

export const subscriptions: ReadonlyArray<Case> = [
  define<StoredObject>({
    name: "returns what is stored when the endpoint is posted again, and says what it ignored",
    given: (api) => api.stored(),
    request: (api) => post({ ...api.subscription("a", { more: 1 }), keys: otherKeys }),
    expected: (_, stored) => ({
      status: 200,
      exactly: { data: stored, warnings: [expect.stringContaining("ignored")] },
      headers: stamped(stored.last_modified)
    }),
    also: async (_, api, stored) =>
      expect((await api.list()).headers.etag).toBe(`"${stored.last_modified}"`)
  }),
  define({
    name: "keeps the lists of two users apart",
    given: (api) => api.stored("a", {}, `${api.me}2`),
    request: (api) => post(api.subscription("b")),
    expected: ({ target }) => ({
      status: 201,
      headers: { Location: new RegExp(`^${target.origin}/v1/subscriptions/[0-9a-f]{64}$`) }
    }),
    also: async (_, api) => expect((await api.list()).json.data).toHaveLength(1)
  }),
  ...["POST", "PUT"].flatMap((method) => [
    define<StoredObject>({
      name: `moves another user's subscription with the same keys by ${method}`,
      given: (api) => api.stored("a", {}, `${api.me}2`),
      request: (api, { id }) => store(method, id, api.subscription("a", { by: "me" })),
      expected: { status: 201, body: { data: { by: "me" } } },
      also: async (_, api, { id, last_modified }) => {
        const path = `/subscriptions?_since=${last_modified}`
        const rest = async () => (await api.send({ method: "GET", path, as: `${api.me}2` })).json
        await expect.poll(async () => (await rest()).data).toMatchObject([{ id, deleted: true }])
        expect((await api.list()).json.data).toHaveLength(1)
      }
    }),
    define<StoredObject>({
      name: `refuses ${method} of another user's endpoint with other keys, and changes nothing`,
      given: (api) => api.stored("a", {}, `${api.me}2`),
      request: (api, { id }) => store(method, id, { ...api.subscription(), keys: otherKeys }),
      expected: { status: 409, errno: 123, message: /unsubscribe in the browser/ },
      also: async (_, api, { id, ...stored }) => {
        const other = { method: "GET", path: `/subscriptions/${id}`, as: `${api.me}2` }
        expect((await api.send(other)).json.data).toEqual({ id, ...stored })
        expect((await api.list()).json.data).toEqual([])
      }
    })
  ]),
  define<StoredObject>({
    name: "stores a subscription in place of another one, whose tombstone comes before it",
    given: (api) => api.stored(),
    request: (api, { id }) => replacing(api.subscription("b"), id),
    expected: { status: 201 },
    also: async ({ json }, api, { id, last_modified }) => {
      const { data } = (await api.list(`?_since=${last_modified}`)).json
      expect(data).toEqual([json.data, { id, last_modified: expect.any(Number), deleted: true }])
      expect(data[0].last_modified).toBe(data[1].last_modified + 1)
      const again = await api.send(replacing(api.subscription("b"), id))
      expect([again.status, again.json.data]).toEqual([200, json.data])
    }
  }),
  define<StoredObject>({
    name: "takes members that are not posted from what a subscription replaces",
    given: (api) => api.stored("a", { label: "Phone", locale: "de", more: 1 }),
    request: (api, { id }) => replacing(api.subscription("b", { locale: "fr", more: null }), id),
    expected: (api) => ({
      status: 201,
      body: { data: api.subscription("b", { label: "Phone", locale: "fr", more: null }) }
    })
  }),
  define<StoredObject>({
    name: "counts members of what a subscription replaces against its limit",
    given: (api) => api.stored("a", { more: "x".repeat(3_000) }),
    request: (api, { id }) => replacing(api.subscription("b", { others: "x".repeat(1_000) }), id),
    expected: { status: 413 },
    also: async (_, api, stored) => expect((await api.list()).json.data).toEqual([stored])
  }),
  define<StoredObject>({
    name: "removes what a stored subscription replaces",
    given: async (api) => {
      await api.stored("b")
      return api.stored("a")
    },
    request: (api, { id }) => replacing({ ...api.subscription("b"), keys: otherKeys }, id),
    expected: (api) => ({ status: 200, body: { data: api.subscription("b") } }),
    also: async ({ json }, api) => expect((await api.list()).json.data).toEqual([json.data])
  }),
  define({
    name: "does not replace what the user does not have, and stores nothing",
    request: (api) => replacing(api.subscription(), "abc"),
    expected: { status: 404, errno: 110, body: { details: { id: "abc" } } },
    also: async (_, api) => expect((await api.list()).json.data).toEqual([])
  }),
  define<StoredObject>({
    name: "does not replace a subscription of another user",
    given: (api) => api.stored("a", {}, `${api.me}2`),
    request: (api, { id }) => replacing(api.subscription("b"), id),
    expected: { status: 404, errno: 110 }
  }),
  define<StoredObject>({
    name: "stores a subscription again that is to replace itself",
    given: (api) => api.stored(),
    request: (api, { id }) => replacing(api.subscription(), id),
    expected: (_, stored) => ({ status: 200, exactly: { data: stored } })
  }),
  define({
    name: "refuses to replace what could be no id",
    request: (api) => replacing(api.subscription(), "_a"),
    expected: { status: 400, errno: 109, details: ["body:replaces"] }
  }),
  define<StoredObject>({
    name: "knows no replaces on PUT",
    given: (api) => api.stored(),
    request: (api, { id }) => ({
      ...put(id, undefined),
      body: { data: api.subscription(), replaces: id }
    }),
    expected: { status: 400, errno: 109, details: ["body:"] }
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
  })
]
