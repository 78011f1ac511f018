// Contract 4.12: what operators see of a person, and restoring. No process of the suite delivers,
// so nothing is gone; test/integration/restore-http.test.ts has that.
import { expect } from "vitest"
import type { Api, Request, StoredObject } from "../api.ts"
import { type Case, define } from "../table.ts"

const pathOf = (id: string): string => `/users/${encodeURIComponent(id)}`

const get = (api: Api, as: string | null = api.target.operator): Request => ({
  method: "GET",
  path: pathOf(api.userId()),
  as
})
const restore = (api: Api, id: string, as: string | null = api.target.operator): Request => ({
  method: "POST",
  path: `${pathOf(api.userId())}/subscriptions/${id}/restore`,
  as
})

const others: ReadonlyArray<
  readonly [who: string, as: (api: Api) => string | null, status: 401 | 403, errno: number]
> = [
  ["a publisher with the right users", ({ target }) => target.publisher, 403, 121],
  ["the person", ({ me }) => me, 403, 121],
  ["nobody", () => null, 401, 104]
]

export const persons: ReadonlyArray<Case> = [
  define<StoredObject>({
    name: "shows an operator the devices and the channels of a user, and no endpoint",
    given: async (api) => {
      await api.registered()
      return api.stored("a", { label: "Work", locale: "de", visits: 2 })
    },
    request: (api) => get(api),
    expected: (api, { id }) => ({
      status: 200,
      headers: { "Cache-Control": /no-store/ },
      body: {
        data: {
          id: api.userId(),
          devices: [
            {
              id,
              host: new URL(api.target.pushOrigin).hostname,
              push_service: "other",
              label: "Work",
              locale: "de"
            }
          ],
          registrations: 1,
          channels: [{ id: api.channel }]
        }
      }
    }),
    also: ({ json, text }, _, { endpoint, keys, last_modified }) => {
      const [{ created, last_modified: shown, suspended, visits }] = json.data.devices
      expect([shown, suspended, visits]).toEqual([last_modified, undefined, undefined])
      expect(Math.abs(created - last_modified)).toBeLessThan(10_000)
      for (const secret of [endpoint, keys.auth, keys.p256dh]) expect(text).not.toContain(secret)
    }
  }),
  define({
    name: "shows an operator that nothing is stored of a user",
    request: (api) => get(api),
    expected: (api) => ({
      status: 200,
      exactly: {
        data: { id: api.userId(), devices: [], registrations: 0, channels: [], pushes: [] }
      }
    })
  }),
  define({
    name: "shows no user of an unknown policy",
    request: ({ target }) => ({ method: "GET", path: pathOf("nobody:1"), as: target.operator }),
    expected: { status: 400, errno: 107, details: ["path:null"] }
  }),
  define<StoredObject>({
    name: "leaves a subscription as it is that nothing happened to",
    given: (api) => api.stored(),
    request: (api, { id }) => restore(api, id),
    expected: (_, { id, last_modified }) => ({
      status: 200,
      body: { data: { id, last_modified } }
    })
  }),
  define<StoredObject>({
    name: "does not give back what the user removed",
    given: async (api) => {
      const stored = await api.stored()
      await api.removed(stored.id)
      return stored
    },
    request: (api, { id }) => restore(api, id),
    expected: (_, { id }) => ({
      status: 404,
      errno: 110,
      body: { details: { id, resource_name: "subscription" } }
    })
  }),
  define({
    name: "restores no subscription of an impossible id",
    request: (api) => restore(api, "a%20b"),
    expected: { status: 400, errno: 107, details: ["path:null"] }
  }),
  ...others.flatMap(([who, as, status, errno]) => [
    define({
      name: `does not show a user to ${who}`,
      request: (api) => get(api, as(api)),
      expected: { status, errno }
    }),
    define<StoredObject>({
      name: `restores nothing for ${who}`,
      given: (api) => api.stored(),
      request: (api, { id }) => restore(api, id, as(api)),
      expected: { status, errno }
    })
  ])
]
