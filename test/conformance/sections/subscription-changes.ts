// Contract 3.3 and 3.4: removal of subscriptions, and their timestamps.
import { expect } from "vitest"
import { type Api, otherKeys, type StoredObject } from "../api.ts"
import { type Case, define } from "../table.ts"
import { post, put, stamped } from "./subscriptions.ts"

/** Two spellings of one endpoint. */
const google = ({ channel }: Api) => ({
  endpoint: `https://fcm.googleapis.com/fcm/send/${channel}`
})
const alsoGoogle = ({ channel }: Api) => ({
  endpoint: `https://fcm.googleapis.com/wp/${channel}`
})

export const subscriptionChanges: ReadonlyArray<Case> = [
  define<StoredObject>({
    name: "returns what is stored when the endpoint is posted in another spelling",
    given: (api) => api.stored("a", google(api)),
    request: (api) => post(api.subscription("a", alsoGoogle(api))),
    expected: (_, data) => ({ status: 200, exactly: { data } })
  }),
  define<StoredObject>({
    name: "replaces a stored endpoint by another spelling of it",
    given: (api) => api.stored("a", google(api)),
    request: (api, { id }) => put(id, api.subscription("a", alsoGoogle(api))),
    expected: (api, { id }) => ({ status: 200, body: { data: { id, ...alsoGoogle(api) } } }),
    also: async ({ json }, api) => expect((await api.list()).json.data).toEqual([json.data])
  }),
  define<StoredObject>({
    name: "moves another user's subscription, stored in another spelling",
    given: (api) => api.stored("a", google(api), `${api.me}2`),
    request: (api) => post(api.subscription("a", alsoGoogle(api))),
    expected: { status: 201 },
    also: async (_, api) => {
      const other = { method: "GET", path: "/subscriptions", as: `${api.me}2` }
      expect((await api.send(other)).json.data).toEqual([])
    }
  }),
  define({
    name: "refuses another user's endpoint with other keys in another spelling",
    given: (api) => api.stored("a", google(api), `${api.me}2`),
    request: (api) => post({ ...api.subscription("a", alsoGoogle(api)), keys: otherKeys }),
    expected: { status: 409, errno: 123 }
  }),
  define<StoredObject>({
    name: "says that it ignored other keys, beside a secret, too",
    given: (api) => api.stored(),
    request: (api) => ({
      method: "POST",
      path: "/subscriptions",
      headers: { Prefer: "renewal" },
      body: { data: { ...api.subscription(), keys: otherKeys } }
    }),
    expected: (_, data) => ({
      status: 200,
      body: { data, renewal: expect.any(String), warnings: [expect.any(String)] }
    })
  }),
  define<StoredObject>({
    name: "warns of nothing when a stored subscription is stored again",
    given: (api) => api.stored(),
    request: (api) => ({
      method: "POST",
      path: "/subscriptions",
      body: { data: api.subscription() }
    }),
    expected: (_, data) => ({ status: 200, exactly: { data } })
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
    expected: { status: 429, error: "too-many-subscriptions" }
  })
]
