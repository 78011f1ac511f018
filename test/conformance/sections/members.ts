// Contract 4.5: the members of a channel, by a publisher with the right `users`.
import { expect } from "vitest"
import type { Api, Request } from "../api.ts"
import { type Case, define } from "../table.ts"

const listOf = ({ channel, target }: Api, query = ""): Request => ({
  method: "GET",
  path: `/channels/${channel}/members${query}`,
  as: target.publisher
})

const member = (api: Api, method: string, user = api.me, channel = api.channel): Request => ({
  method,
  path: `/channels/${channel}/members/${encodeURIComponent(api.userId(user))}`,
  as: api.target.publisher
})

const isRegistered = async (api: Api, channel = api.channel) =>
  (await api.send({ method: "GET", path: `/channels/${channel}` })).status === 200

/** Five users of the case. */
const several = ({ me }: Api) => ["", "2", "3", "4", "5"].map((end) => `${me}${end}`)

const idsOf = ({ data }: { readonly data: ReadonlyArray<{ readonly id: string }> }) =>
  data.map(({ id }) => id)

export const members: ReadonlyArray<Case> = [
  ...["PUT", "DELETE"].flatMap((method) => [
    define({
      name: `acknowledges ${method} of a member each time, with or without a body`,
      given: (api) => api.send(member(api, method)),
      request: (api) => ({ ...member(api, method), body: "{nonsense" }),
      expected: { status: 202, exactly: { code: 202, message: "Accepted" } }
    }),
    define({
      name: `lets a user without the rights ${method} no member, not even themselves`,
      given: async (api) => {
        if (method === "DELETE") await api.registered()
      },
      request: (api) => ({ ...member(api, method), as: api.me }),
      expected: { status: 403, errno: 121 },
      also: async (_, api) => expect(await isRegistered(api)).toBe(method === "DELETE")
    }),
    define({
      name: `does not let nobody ${method} a member`,
      request: (api) => ({ ...member(api, method), as: null }),
      expected: { status: 401, errno: 104 }
    }),
    define({
      name: `refuses ${method} of a member who is no user`,
      request: (api) => ({ ...member(api, method), path: `/channels/${api.channel}/members/x` }),
      expected: { status: 400, errno: 107, details: ["path:null"] }
    })
  ]),
  define({
    name: "shows the channel to a member at once, who may leave it",
    given: (api) => api.send(member(api, "PUT")),
    request: (api) => ({ method: "GET", path: `/channels/${api.channel}` }),
    expected: { status: 200, body: { data: { registrations: 1 } } },
    also: async (_, api) => {
      await api.send({ method: "DELETE", path: `/channels/${api.channel}/registration` })
      expect(await isRegistered(api)).toBe(false)
      expect((await api.send(listOf(api))).json.data).toEqual([])
    }
  }),
  define({
    name: "ends the registration that a user made",
    given: (api) => api.registered(),
    request: (api) => member(api, "DELETE"),
    expected: { status: 202 },
    also: async (_, api) => expect(await isRegistered(api)).toBe(false)
  }),
  define({
    name: "registers a user to a channel that is closed to them",
    request: (api) => member(api, "PUT", api.me, `closed-${api.channel}`),
    expected: { status: 202 },
    also: async (_, api) => expect(await isRegistered(api, `closed-${api.channel}`)).toBe(true)
  }),
  define({
    name: "lists the ids of those who are registered, and of nobody else",
    given: async (api) => {
      const [own, first, second, gone, left] = several(api)
      await api.registered(api.channel, own)
      for (const user of [first, second, gone, left]) await api.send(member(api, "PUT", user))
      await api.send(member(api, "DELETE", gone))
      const path = `/channels/${api.channel}/registration`
      await api.send({ method: "DELETE", path, as: left! })
    },
    request: (api) => listOf(api),
    expected: {
      status: 200,
      headers: { "Total-Records": "3", "Next-Page": null, "Cache-Control": "no-cache, no-store" }
    },
    also: ({ json }, api) => {
      const wanted = several(api).slice(0, 3)
      expect(idsOf(json).sort()).toEqual(wanted.map((user) => api.userId(user)).sort())
    }
  }),
  define({
    name: "lists members in pages, each on one of them",
    given: (api) => Promise.all(several(api).map((user) => api.send(member(api, "PUT", user)))),
    request: (api) => listOf(api, "?_limit=2&nonsense=1"),
    expected: { status: 200, headers: { "Total-Records": "5", "Next-Page": /_limit=2&_token=/ } },
    also: async (response, api) => {
      const ids = idsOf(response.json)
      for (let { headers } = response; headers["next-page"] !== undefined; ) {
        const { pathname, search } = new URL(String(headers["next-page"]))
        const next = await api.send({ ...listOf(api), target: `${pathname}${search}` })
        expect(next.status).toBe(200)
        ids.push(...idsOf(next.json))
        headers = next.headers
      }
      expect(ids.toSorted()).toEqual(
        several(api)
          .map((user) => api.userId(user))
          .sort()
      )
      // Without pages, the order is the same.
      expect(idsOf((await api.send(listOf(api))).json)).toEqual(ids)
    }
  }),
  define({
    name: "lists no members of a channel that nobody knows",
    request: (api) => listOf(api),
    expected: { status: 200, exactly: { data: [] }, headers: { "Total-Records": "0" } }
  }),
  define({
    name: "lists no members for who is registered only",
    given: (api) => api.registered(),
    request: (api) => ({ ...listOf(api), as: api.me }),
    expected: { status: 403, errno: 121 }
  }),
  ...["_limit=-1", "_limit=x", "_token=x"].map((query) =>
    define({
      name: `refuses ${query} for members`,
      request: (api) => listOf(api, `?${query}`),
      expected: { status: 400, errno: 107 }
    })
  )
]
