// Contract 3.1 and 3.2: the size of a subscription, and its members id, last_modified and
// vapid_public_key.
import { expect } from "vitest"
import { type Api, keys } from "../api.ts"
import { type Case, define } from "../table.ts"
import { post, vectors } from "./subscription-bodies.ts"

/** A member `more` that makes the JSON of the subscription "a" `bytes` long. */
export const filler = (api: Api, bytes: number) =>
  "x".repeat(bytes - JSON.stringify(api.subscription("a", { more: "" })).length)

export const subscriptionMembers: ReadonlyArray<Case> = [
  define({
    name: "takes a subscription of 4096 bytes of JSON",
    request: (api) => post(api.subscription("a", { more: filler(api, 4_096) })),
    expected: { status: 201 }
  }),
  define({
    name: "refuses a subscription of 4097 bytes of JSON, and says how large it may be",
    request: (api) => post(api.subscription("a", { more: filler(api, 4_097) })),
    expected: { status: 413, error: "subscription-too-large", message: /subscription.*4096 bytes/ }
  }),
  define({
    name: "does not replace a subscription by one of more than 4096 bytes",
    given: (api) => api.stored(),
    request: (api, { id }) => ({
      method: "PUT",
      path: `/subscriptions/${id}`,
      body: { data: api.subscription("a", { more: filler(api, 4_097) }) }
    }),
    expected: { status: 413, error: "subscription-too-large" },
    also: async (_, api) => expect((await api.list()).json.data[0].more).toBeUndefined()
  }),
  define({
    name: "ignores a timestamp that the client chose",
    request: (api) => post(api.subscription("a", { last_modified: 12 })),
    expected: { status: 201 },
    also: ({ json }) => expect(json.data.last_modified).toBeGreaterThan(1_600_000_000_000)
  }),
  define({
    name: "ignores a timestamp that is none",
    request: (api) => post(api.subscription("a", { last_modified: "nonsense" })),
    expected: { status: 201 },
    also: ({ json }) => expect(json.data.last_modified).toBeTypeOf("number")
  }),
  define({
    name: "stores a language and a label, and shows both",
    request: (api) => post(api.subscription("a", { locale: "pt-BR", label: "Handy 📱" })),
    expected: { status: 201, body: { data: { locale: "pt-BR", label: "Handy 📱" } } },
    also: async (_, api) =>
      expect(
        (await api.list("?label=Handy%20%F0%9F%93%B1&_fields=locale")).json.data
      ).toMatchObject([{ locale: "pt-BR" }])
  }),
  ...[
    ["locale", "de_DE"],
    ["locale", ""],
    ["locale", `de-x-${"a".repeat(40)}`],
    ["locale", 5],
    ["locale", null],
    ["label", "x".repeat(101)],
    ["label", ["x"]]
  ].map(([name, value]) =>
    define({
      name: `refuses ${JSON.stringify(value).slice(0, 20)} as the ${name} of a subscription`,
      request: (api) => post(api.subscription("a", { [String(name)]: value })),
      expected: { status: 400, errno: 109, details: [`body:data.${name}`] }
    })
  ),
  define({
    name: "takes the id that belongs to the endpoint",
    request: { ...post({ endpoint: vectors[0]![0], keys, id: vectors[0]![1] }) },
    expected: { status: 201, body: { data: { id: vectors[0]![1] } } }
  }),
  define({
    name: "refuses another id, and names both",
    request: post({ endpoint: vectors[0]![0], keys, id: "abc" }),
    expected: {
      status: 400,
      errno: 109,
      details: ["body:data"],
      message: /abc.*12eccec8|12eccec8.*abc/
    }
  }),
  ...["", "_a", "a b", "ä"].map((id) =>
    define({
      name: `refuses the impossible id ${JSON.stringify(id)} in a body as it would in a path`,
      request: (api) => post({ ...api.subscription(), id }),
      expected: { status: 400, errno: 107, details: ["path:null"], message: /^path: / }
    })
  ),
  define({
    name: "refuses an id that is no text",
    request: (api) => post({ ...api.subscription(), id: 3 }),
    expected: { status: 400, errno: 109, details: ["body:data.id"] }
  }),
  define({
    name: "stores the key that a browser subscribed with, and returns it with the other members",
    given: async (api) =>
      (await api.send({ method: "GET" })).json.capabilities.webpush.vapid_public_key as string,
    request: (api, key) => post(api.subscription("named", { vapid_public_key: key })),
    expected: (_, key) => ({ status: 201, body: { data: { vapid_public_key: key } } })
  }),
  ...([keys.p256dh, "", "nonsense", 7, null] as const).map((key) =>
    define({
      name: `refuses a subscription made with a key of another server: ${JSON.stringify(key)}`,
      request: (api) => post(api.subscription("named", { vapid_public_key: key })),
      expected: { status: 400, errno: 109, details: ["body:data.vapid_public_key"] }
    })
  )
]
