// Contract 3.12: renewing a subscription by a secret, without a login.
import { expect } from "vitest"
import { type Api, keys, otherKeys, type StoredObject } from "../api.ts"
import { type Case, define } from "../table.ts"
import { filler } from "./subscription-members.ts"
import { post, put } from "./subscriptions.ts"

const headers = { Prefer: "return=minimal, renewal" }

/** Stores a subscription with a secret, which is returned with the object. */
const renewable = async (api: Api, data: object = api.subscription("a", { label: "phone" })) => {
  const { json } = await api.send({ ...post(data), headers })
  return json as { readonly data: StoredObject; readonly renewal: string }
}
const replace = (renewal: unknown, data: object) => ({
  method: "POST",
  path: "/subscriptions/replace",
  as: null,
  body: { renewal, data }
})
const forbidden = { status: 403, errno: 121 } as const
const isForbidden = async (api: Api, renewal: string, data: object = api.subscription("c")) => {
  const { json, status } = await api.send(replace(renewal, data))
  expect([status, json.errno]).toEqual([403, 121])
}
type Given = Awaited<ReturnType<typeof renewable>>

export const renewal: ReadonlyArray<Case> = [
  define({
    name: "responds with a secret that no other response shows",
    request: (api) => ({ ...post(api.subscription()), headers }),
    expected: {
      status: 201,
      body: { renewal: expect.stringMatching(/^[\w-]{22}\.[0-9a-f]{64}\.[\w-]{43}$/) }
    },
    also: async ({ json }, api) => {
      expect((await api.list()).json.data).toEqual([json.data])
      expect(json.data).not.toHaveProperty("renewal")
    }
  }),
  define<Given>({
    name: "makes a new secret of a stored subscription, and the earlier one void",
    given: (api) => renewable(api),
    request: (api) => ({ ...post(api.subscription()), headers }),
    expected: (_, { data }) => ({ status: 200, body: { data } }),
    also: async ({ json }, api, given) => {
      expect(json.renewal).not.toBe(given.renewal)
      await isForbidden(api, given.renewal)
      const renewed = await api.send(replace(json.renewal, api.subscription("b")))
      expect(renewed.status).toBe(201)
    }
  }),
  define<StoredObject>({
    name: "responds with a secret to a PUT, whether it stores or replaces",
    given: async (api) => {
      const stored = await api.stored()
      await api.removed(stored.id)
      return stored
    },
    request: (api, { id }) => put(id, api.subscription(), headers),
    expected: { status: 201, body: { renewal: expect.any(String) } },
    also: async ({ json: first }, api, { id }) => {
      const { json, status } = await api.send(put(id, api.subscription(), headers))
      expect(status).toBe(200)
      expect(json.renewal).not.toBe(first.renewal)
      await isForbidden(api, first.renewal)
      const renewed = await api.send(replace(json.renewal, api.subscription("b")))
      expect(renewed.status).toBe(201)
    }
  }),
  define<Given>({
    name: "repeats a renewal whose response was lost, also after a PUT of the new subscription",
    given: async (api) => {
      const given = await renewable(api)
      await api.send(replace(given.renewal, api.subscription("b")))
      const [{ id }] = (await api.list()).json.data
      await api.send(put(id, api.subscription("b", { label: "new" })))
      return given
    },
    request: (api, given) => replace(given.renewal, api.subscription("b")),
    expected: {
      status: 200,
      body: { data: { label: "new" }, renewal: expect.any(String) }
    }
  }),
  define<Given>({
    name: "keeps the secret on a PUT that asks for none",
    given: async (api) => {
      const given = await renewable(api)
      await api.send(put(given.data.id, { ...api.subscription(), keys: otherKeys }))
      return given
    },
    request: (api, given) => replace(given.renewal, api.subscription("b")),
    expected: { status: 201 }
  }),
  define<Given>({
    name: "stores the new subscription in place of the former one, with its attributes",
    given: (api) => renewable(api),
    request: (api, given) =>
      replace(given.renewal, api.subscription("b", { label: "no", expirationTime: 2 })),
    expected: (api) => ({
      status: 201,
      body: { data: api.subscription("b", { label: "phone", expirationTime: 2 }) }
    }),
    also: async ({ json }, api, { data, renewal: spent }) => {
      const listed = (await api.list(`?_since=${data.last_modified}`)).json.data
      expect(listed).toMatchObject([json.data, { id: data.id, deleted: true }])
      await isForbidden(api, spent)
      const again = await api.send(replace(spent, api.subscription("b")))
      expect([again.status, again.json.data]).toEqual([200, json.data])
      await isForbidden(api, json.renewal)
      const next = await api.send(replace(again.json.renewal, api.subscription("c")))
      expect(next.status).toBe(201)
      await isForbidden(api, spent, api.subscription("b"))
    }
  }),
  define<Given>({
    name: "stores no more than 4096 bytes with the attributes of the former subscription",
    given: (api) => renewable(api, api.subscription("a", { more: filler(api, 4_096) })),
    request: (api, { renewal }) =>
      replace(renewal, { ...api.subscription("b"), expirationTime: 1_900_000_000_000 }),
    expected: { status: 413, error: "subscription-too-large" },
    also: async (_, api, { data }) => expect((await api.list()).json.data).toEqual([data])
  }),
  define<Given>({
    name: "renews the keys of the same endpoint",
    given: (api) => renewable(api),
    request: (api, given) => replace(given.renewal, { ...api.subscription(), keys: otherKeys }),
    expected: { status: 201, body: { data: { keys: otherKeys } } },
    also: async ({ json }, api) => expect((await api.list()).json.data).toEqual([json.data])
  }),
  define<Given>({
    name: "takes no endpoint of another user, whatever its keys",
    given: async (api) => {
      await api.stored("b", {}, `${api.me}2`)
      return renewable(api)
    },
    request: (api, given) => replace(given.renewal, { ...api.subscription("b"), keys }),
    expected: { status: 409, errno: 123 },
    also: async (_, api) => expect((await api.list()).json.data).toHaveLength(1)
  }),
  ...[
    ["was removed", (api: Api, id: string) => api.removed(id)],
    [
      "was replaced",
      (api: Api, replaces: string) =>
        api.send({ ...post({}), body: { data: api.subscription("b"), replaces } })
    ],
    ["moved", (api: Api) => api.send({ ...post(api.subscription()), as: `${api.me}2` })]
  ].map(([what, end]) =>
    define<Given>({
      name: `renews no subscription that ${what}`,
      given: async (api) => {
        const given = await renewable(api)
        await (end as (api: Api, id: string) => Promise<unknown>)(api, given.data.id)
        return given
      },
      request: (api, given) => replace(given.renewal, api.subscription("c")),
      expected: forbidden
    })
  ),
  ...["x", `${"A".repeat(22)}.${"0".repeat(64)}.${"A".repeat(43)}`].map((secret) =>
    define({
      name: `refuses the unknown secret ${secret.slice(0, 3)}`,
      request: (api) => replace(secret, api.subscription()),
      expected: forbidden
    })
  ),
  define<Given>({
    name: "refuses the random part of a secret with another user or subscription",
    given: (api) => renewable(api),
    request: (api, { renewal }) => {
      const other = renewal.startsWith("A") ? "B" : "A"
      return replace(`${other}${renewal.slice(1)}`, api.subscription("b"))
    },
    expected: forbidden
  }),
  ...[undefined, null, 1, ""].map((secret) =>
    define({
      name: `needs a secret, not ${JSON.stringify(secret)}`,
      request: (api) => replace(secret, api.subscription()),
      expected: { status: 400, errno: 109, details: ["body:renewal"] }
    })
  ),
  define<Given>({
    name: "renews at allowed push services only",
    given: (api) => renewable(api),
    request: (_, given) => replace(given.renewal, { endpoint: "https://10.0.0.1/a", keys }),
    expected: { status: 400, errno: 109, details: ["body:data.endpoint"] }
  })
]
