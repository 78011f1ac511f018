// Contract 7.1, 7.2 and 7.7: callers by every policy. Each case has the credentials of the policy
// that is on.
import { expect } from "vitest"
import type { Api, Request } from "../api.ts"
import type { Headers, Wrong } from "../logins/login.ts"
import { type Case, check, define } from "../table.ts"
import { batch } from "./batch.ts"
import { create, statuses } from "./batch-entries.ts"

/** The reason beside the error: each policy has words of its own for it. */
const description = /, error_description="[^"]*"/

const wrongOf = ({ target }: Api) => target.users.wrong()

/** A request without credentials but the wrong ones. */
const by = (path: string, { headers }: Wrong): Request => ({
  method: "GET",
  path,
  as: null,
  headers
})

/** Two other users of the case, and a publisher. */
const othersOf = ({ me, target }: Api) => [`${me}2`, `${me}3`, target.publisher] as const

/** Entries by the second, the third and the first user, with what tells them apart. */
const entriesOf = (api: Api, [second, third, publisher]: ReadonlyArray<Headers>) => {
  const broadcast = { method: "POST", path: `/channels/${api.channel}`, body: {} }
  const registration = { method: "PUT", path: `/channels/${api.channel}/registration` }
  return [
    { ...create(api, "of-the-second"), headers: second },
    { ...create(api, "of-the-third"), headers: third },
    create(api, "of-the-first"),
    ...[second, third, publisher, {}].map((headers) => ({ path: "/", headers })),
    { ...registration, headers: second },
    { ...broadcast, headers: third },
    { ...broadcast, headers: publisher },
    broadcast,
    { path: "/subscriptions", headers: { Authorization: "Nobody x" } },
    { path: "/subscriptions", headers: { Authorization: "" } }
  ]
}

const endpointsOf = async (api: Api, as: string): Promise<ReadonlyArray<string>> => {
  const { json } = await api.send({ method: "GET", path: "/subscriptions", as })
  return json.data.map(({ endpoint }: { endpoint: string }) => endpoint.split("/").at(-1)).sort()
}

const isRegistered = async (api: Api, as: string): Promise<boolean> => {
  const { json } = await api.send({ method: "GET", path: "/registrations", as })
  return json.data.some(({ id }: { id: string }) => id === api.channel)
}

const idsOf = (json: { responses: ReadonlyArray<{ body: { user?: { id: string } } }> }) =>
  json.responses.flatMap(({ body }) => (body.user === undefined ? [] : [body.user.id]))

export const callers: ReadonlyArray<Case> = [
  define({
    name: "says who is asking",
    request: { method: "GET" },
    expected: (api) => ({ status: 200, body: { user: { id: api.userId() } } }),
    also: ({ json }, api) => {
      const all = [api.userId(), "system.Authenticated", "system.Everyone"]
      expect([...json.user.principals].sort()).toEqual(all.sort())
    }
  }),
  define<{ readonly id: string }>({
    name: "does nothing for another user than the one whom the request names",
    given: (api) => api.stored(),
    request: (api, { id }) => ({
      method: "DELETE",
      path: `/subscriptions/${id}`,
      headers: { "If-User": encodeURIComponent(api.userId(`${api.me}2`)) }
    }),
    expected: { status: 412, errno: 114, error: "another-user" },
    also: async (_, api, { id }) => {
      const own = { "If-User": encodeURIComponent(api.userId()) }
      const request = { method: "GET", path: `/subscriptions/${id}` }
      for (const [headers, as, status] of [
        [own, api.me, 200],
        [own, null, 401],
        [{ "If-User": "%ff" }, api.me, 412],
        [{ "If-User": "" }, api.me, 412]
      ] as const) {
        const response = await api.send({ ...request, headers, as })
        expect(response.status, `${as}: ${headers["If-User"]}`).toBe(status)
      }
    }
  }),
  define({
    name: "takes wrong credentials for nobody on a public endpoint",
    request: { method: "GET", as: null },
    expected: { status: 200 },
    also: async ({ json }, api) => {
      expect(json.user).toBeUndefined()
      for (const wrong of await wrongOf(api)) {
        const response = await api.send(by("/", wrong))
        expect([response.status, response.json.user], wrong.name).toEqual([200, undefined])
        // A page learns here that its token is refused, and why.
        const challenge = response.headers["www-authenticate"]?.replace(description, "")
        const isRefused = wrong.challenge.includes("error=")
        expect(challenge, wrong.name).toBe(isRefused ? wrong.challenge : undefined)
      }
    }
  }),
  define({
    name: "lets no cache keep the root, which names the caller",
    request: { method: "GET" },
    expected: { status: 200, headers: { "Cache-Control": "no-cache, no-store" } }
  }),
  define({
    name: "refuses wrong credentials where a caller is needed, each with its challenge",
    request: { method: "GET", path: "/subscriptions", as: null },
    expected: { status: 401, errno: 104 },
    also: async (_, api) => {
      for (const wrong of await wrongOf(api)) {
        const request = by("/subscriptions", wrong)
        const response = await api.send(request)
        const challenge = response.headers["www-authenticate"]?.replace(description, "")
        expect([response.status, challenge], wrong.name).toEqual([401, wrong.challenge])
        check(response, request, { status: 401, errno: 104 })
      }
    }
  }),
  ...(
    [
      ["GET", "/subscriptions"],
      ["HEAD", "/subscriptions"],
      ["POST", "/subscriptions"],
      ["DELETE", "/subscriptions"],
      ["GET", "/subscriptions/abc"],
      ["PUT", "/subscriptions/abc"],
      ["DELETE", "/subscriptions/abc"],
      ["GET", "/channels/abc"],
      ["POST", "/channels/abc"]
    ] as const
  ).map(([method, path]) =>
    define({
      name: `asks nobody for credentials on ${method} ${path}`,
      request: { method, path, as: null },
      expected: ({ target: { login } }) => ({
        status: 401,
        errno: 104,
        message: /authenticate/,
        headers: { "WWW-Authenticate": login.challenge }
      })
    })
  ),
  define<{ readonly id: string }>({
    name: "neither shows nor removes the objects of another user",
    given: async (api) => {
      await api.registered()
      return api.stored()
    },
    request: (api, { id }) => ({
      method: "DELETE",
      path: `/subscriptions/${id}`,
      as: `${api.me}2`
    }),
    expected: { status: 404, errno: 110 },
    also: async (_, api, { id }) => {
      const as = `${api.me}2`
      const all = await api.send({ method: "DELETE", path: "/subscriptions", as })
      expect(all.json.data).toEqual([])
      const one = await api.send({ method: "GET", path: `/subscriptions/${id}`, as })
      expect(one.status).toBe(404)
      expect(await isRegistered(api, as)).toBe(false)
      expect(await isRegistered(api, api.me)).toBe(true)
      expect(await endpointsOf(api, api.me)).toEqual(["a"])
    }
  }),
  define<ReadonlyArray<Headers>>({
    name: "acts in each entry of a batch as the user of its Authorization, never as another",
    only: ({ isInAuthorization }) => isInAuthorization,
    given: (api) => Promise.all(othersOf(api).map((user) => api.headersOf(user))),
    request: (api, others) => batch(entriesOf(api, others)),
    expected: { status: 200 },
    also: async ({ json }, api) => {
      const [second, third, publisher] = othersOf(api)
      expect(statuses(json)).toEqual([
        ...[201, 201, 201],
        ...[200, 200, 200, 200],
        202,
        ...[403, 202, 403],
        ...[401, 401]
      ])
      expect(idsOf(json)).toEqual(
        [second, third, publisher, api.me].map((user) => api.userId(user))
      )
      expect(await endpointsOf(api, second)).toEqual(["of-the-second"])
      expect(await endpointsOf(api, third)).toEqual(["of-the-third"])
      expect(await endpointsOf(api, api.me)).toEqual(["of-the-first"])
      expect(await isRegistered(api, second)).toBe(true)
      expect(await isRegistered(api, api.me)).toBe(false)
    }
  }),
  define<ReadonlyArray<Headers>>({
    name: "takes the Authorization of a batch's defaults for entries without one",
    only: ({ isInAuthorization }) => isInAuthorization,
    given: (api) => Promise.all(othersOf(api).map((user) => api.headersOf(user))),
    request: (_, [second, third]) =>
      batch([{ path: "/" }, { path: "/", headers: third }], { defaults: { headers: second } }),
    expected: { status: 200 },
    also: ({ json }, api) => {
      const [second, third] = othersOf(api)
      expect(idsOf(json)).toEqual([second, third].map((user) => api.userId(user)))
    }
  }),
  define<ReadonlyArray<Headers>>({
    name: "acts in each entry of a batch as the user of the batch, whatever headers it has",
    only: ({ isInAuthorization }) => !isInAuthorization,
    given: (api) => Promise.all(othersOf(api).map((user) => api.headersOf(user))),
    request: (api, others) => batch(entriesOf(api, others)),
    expected: { status: 200 },
    also: async ({ json }, api) => {
      const [second, third, publisher] = othersOf(api)
      expect(statuses(json)).toEqual([
        ...[201, 201, 201],
        ...[200, 200, 200, 200],
        202,
        ...[403, 403, 403],
        ...[200, 200]
      ])
      expect(idsOf(json)).toEqual(Array(4).fill(api.userId()))
      expect(await endpointsOf(api, api.me)).toHaveLength(3)
      for (const other of [second, third, publisher]) {
        expect(await endpointsOf(api, other)).toEqual([])
        expect(await isRegistered(api, other)).toBe(false)
      }
    }
  })
]
