// Contract 7.10: requests that name a user, by callers with the right `users`. The publisher of the
// tests has it.
import { expect } from "vitest"
import type { Api, Request, StoredObject } from "../api.ts"
import { type Case, define } from "../table.ts"
import { batch } from "./batch.ts"

const pathOf = (userId: string, query = "") =>
  `/users/${encodeURIComponent(userId)}/subscriptions${query}`

const logout = (api: Api, query?: string, userId = api.userId()): Request => ({
  method: "DELETE",
  path: pathOf(userId, query),
  as: api.target.publisher
})

const nobody = [
  ...["nobody", "", ":", "other:abc", "token:abc", "system.Everyone"],
  // A user of a broadcast only (4.16).
  `pseudonym:${"a".repeat(22)}`
]

export const users: ReadonlyArray<Case> = [
  define<ReadonlyArray<StoredObject>>({
    name: "logs a user out everywhere, and nobody else",
    given: async (api) => {
      await api.stored("of-another", {}, `${api.me}2`)
      return [await api.stored("a"), await api.stored("b")]
    },
    request: (api) => logout(api),
    expected: (_, stored) => ({
      status: 200,
      headers: { "Total-Records": "2", ETag: /^"\d+"$/ },
      body: { data: stored.toReversed().map(({ id }) => ({ id, deleted: true })) }
    }),
    also: async ({ json }, api) => {
      expect((await api.list()).json.data).toEqual([])
      // The user sees the removals as if they were their own.
      expect((await api.list("?_since=0")).json.data).toEqual(json.data.toReversed())
      const others = await api.send({ method: "GET", path: "/subscriptions", as: `${api.me}2` })
      expect(others.json.data).toHaveLength(1)
    }
  }),
  define({
    name: "says of a user without subscriptions that all of them are removed",
    request: (api) => logout(api),
    expected: { status: 200, exactly: { data: [] }, headers: { "Total-Records": "0" } }
  }),
  define({
    name: "removes the subscriptions of a user in pages, and those that match",
    given: (api) => Promise.all(["a", "b", "c"].map((name) => api.stored(name))),
    request: (api) => logout(api, "?_limit=1&like_endpoint=*/a"),
    expected: { status: 200, headers: { "Total-Records": "1", "Next-Page": null } },
    also: async ({ json }, api) => {
      expect(json.data).toHaveLength(1)
      const first = await api.send(logout(api, "?_limit=1"))
      const next = new URL(String(first.headers["next-page"]))
      expect(`${next.origin}${next.pathname}`).toBe(`${api.root}${pathOf(api.userId())}`)
      const target = `${next.pathname}${next.search}`
      const last = await api.send({ method: "DELETE", target, as: api.target.publisher })
      expect([last.status, last.json.data.length]).toEqual([200, 1])
      expect((await api.list()).json.data).toEqual([])
    }
  }),
  define({
    name: "refuses a page token of another user",
    given: async (api) => {
      for (const name of ["a", "b"]) await api.stored(name, {}, `${api.me}2`)
      await api.stored("c")
      const first = await api.send(logout(api, "?_limit=1", api.userId(`${api.me}2`)))
      return new URL(String(first.headers["next-page"])).search
    },
    request: (api, search) => logout(api, String(search)),
    expected: { status: 400, errno: 107, details: ["querystring:null"] },
    also: async (_, api) => expect((await api.list()).json.data).toHaveLength(1)
  }),
  define<StoredObject>({
    name: "removes nothing of a user when the precondition fails",
    given: (api) => api.stored(),
    request: (api) => ({ ...logout(api), headers: { "If-Match": '"1"' } }),
    expected: { status: 412, errno: 114 },
    also: async (_, api) => expect((await api.list()).json.data).toHaveLength(1)
  }),
  define<StoredObject>({
    name: "lets no user without the right name a user, not even themselves",
    given: (api) => api.stored(),
    request: (api) => ({ ...logout(api), as: api.me }),
    expected: { status: 403, errno: 121 },
    also: async (_, api) => {
      const inner = { method: "DELETE", path: pathOf(api.userId()) }
      const outer = await api.send(batch([inner]))
      expect(outer.json.responses[0].status).toBe(403)
      expect((await api.list()).json.data).toHaveLength(1)
    }
  }),
  define({
    name: "tells a caller with the right that they have it",
    request: (api) => ({ method: "GET", path: "/", as: api.target.publisher }),
    expected: { status: 200, body: { user: { users: true } } },
    also: ({ json }) => expect(json.user).not.toHaveProperty("operator")
  }),
  define({
    name: "lets nobody name a user",
    request: (api) => ({ ...logout(api), as: null }),
    expected: { status: 401, errno: 104 }
  }),
  ...nobody.map((userId) =>
    define({
      name: `knows no user ${JSON.stringify(userId)}`,
      request: (api) => logout(api, "", userId),
      expected:
        userId === ""
          ? { status: 404, errno: 111 }
          : { status: 400, errno: 107, details: ["path:null"] }
    })
  )
]
