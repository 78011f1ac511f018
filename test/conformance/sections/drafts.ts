// Contract 4.15: drafts, as their author, an operator and others use them.
import { randomUUID } from "node:crypto"
import { expect } from "vitest"
import type { Api, Request } from "../api.ts"
import { type Case, define } from "../table.ts"

export const put = (
  api: Api,
  id: string,
  data: object,
  headers: Record<string, string> = {},
  as: string | null = api.target.publisher
): Request => ({ method: "PUT", path: `/drafts/${id}`, as, headers, body: { data } })

export const of = (
  api: Api,
  method: string,
  id: string,
  as: string | null = api.target.publisher
) => ({
  method,
  path: `/drafts/${id}`,
  as
})

export interface Stored {
  readonly id: string
  readonly etag: string
}

/** A draft of the publisher's. */
export const drafted = async (api: Api, data: object = full(api)): Promise<Stored> => {
  const id = randomUUID()
  const { headers, status, text } = await api.send(put(api, id, data))
  if (status !== 201) throw new Error(`${status}: ${text}`)
  return { id, etag: headers["etag"] as string }
}

export const full = (api: Api) => ({
  name: "For the evening",
  data: { n: 1 },
  data_by_locale: { de: { n: 2 } },
  to: { channels: [api.channel] },
  rate: 1_000,
  pause_when: { failed_share: 0.2 },
  ttl: 60,
  urgency: "high",
  topic: "evening"
})

const toUser = (api: Api) => ({ data: { n: 1 }, to: { users: [api.userId()] } })

const badBodies: ReadonlyArray<readonly [name: string, data: unknown, details: string]> = [
  ["data that is a list", { data: [] }, "body:data.data"],
  ["a name that is a number", { name: 1 }, "body:data.name"],
  ["a name of 201 characters", { name: "x".repeat(201) }, "body:data.name"],
  ["a variant of no language", { data_by_locale: { "d e": {} } }, "body:data.data_by_locale.d e"],
  ["channels that are no list", { to: { channels: "news" } }, "body:data.to.channels"],
  ["a channel with an empty name", { to: { channels: [""] } }, "body:data.to.channels.0"],
  ["a user without a policy", { to: { users: ["anna@example.org"] } }, "body:data.to.users.0"],
  ["an unknown urgency", { urgency: "soon" }, "body:data.urgency"],
  ["an unknown member", { subject: "x" }, "body:data"],
  ["a list", [], "body:data"]
]

export const drafts: ReadonlyArray<Case> = [
  define({
    name: "stores an unfinished draft under an id of the client's choice",
    request: (api) => put(api, api.channel, { name: "Nothing yet" }, { "if-none-match": "*" }),
    expected: (api) => ({
      status: 201,
      exactly: {
        data: {
          id: api.channel,
          author: api.userId(api.target.publisher),
          changed_by: api.userId(api.target.publisher),
          last_modified: expect.any(Number),
          name: "Nothing yet"
        }
      },
      headers: { ETag: /^"\d+"$/, "Last-Modified": /GMT$/, "Cache-Control": /no-store/ }
    })
  }),
  define<Stored>({
    name: "shows a draft as it was stored",
    given: (api) => drafted(api),
    request: (api, { id }) => of(api, "GET", id),
    expected: (api, { etag }) => ({
      status: 200,
      body: { data: full(api) },
      headers: { ETag: etag }
    })
  }),
  define<Stored>({
    name: "does not send a draft again that the client has",
    given: (api) => drafted(api),
    request: (api, { etag, id }) => ({ ...of(api, "GET", id), headers: { "if-none-match": etag } }),
    expected: { status: 304 }
  }),
  define<Stored>({
    name: "replaces all of a draft with its ETag",
    given: (api) => drafted(api),
    request: (api, { etag, id }) => put(api, id, { data: { n: 3 } }, { "if-match": etag }),
    expected: { status: 200, body: { data: { data: { n: 3 } } } },
    also: async ({ headers, json }, api, { etag, id }) => {
      expect(json.data).not.toHaveProperty("name")
      expect(headers["etag"]).not.toBe(etag)
      const shown = await api.send(of(api, "GET", id))
      expect(shown.json).toEqual(json)
    }
  }),
  define<Stored>({
    name: "refuses to replace a draft without a word on its state",
    given: (api) => drafted(api),
    request: (api, { id }) => put(api, id, {}),
    expected: { status: 428, errno: 125, error: "precondition-required" }
  }),
  define<Stored>({
    name: "refuses to replace a draft that changed meanwhile, and shows it",
    given: (api) => drafted(api),
    request: (api, { id }) => put(api, id, {}, { "if-match": '"1"' }),
    expected: (api, { etag, id }) => ({
      status: 412,
      errno: 114,
      body: { details: { existing: { id, ...full(api) } } },
      headers: { ETag: etag }
    })
  }),
  define<Stored>({
    name: "refuses to begin a draft that there is",
    given: (api) => drafted(api),
    request: (api, { id }) => put(api, id, {}, { "if-none-match": "*" }),
    expected: { status: 412, errno: 114 }
  }),
  define({
    name: "refuses to replace a draft that there is not",
    request: (api) => put(api, api.channel, {}, { "if-match": '"1"' }),
    expected: { status: 412, errno: 114 }
  }),
  ...badBodies.map(([name, data, details]) =>
    define({
      name: `refuses a draft with ${name}`,
      request: (api) => put(api, api.channel, data as object),
      expected: { status: 400, errno: 109, details: [details] }
    })
  ),
  define({
    name: "refuses a draft that fits into no message of the log",
    request: (api) => put(api, api.channel, { data: { text: "x".repeat(29_000) } }),
    expected: { status: 413, error: "body-too-large" }
  }),
  define({
    name: "takes a draft of 28,000 bytes",
    request: (api) => put(api, api.channel, { data: { text: "x".repeat(28_000) } }),
    expected: { status: 201 }
  }),
  define({
    name: "refuses an id with other characters than letters, digits, _ and -",
    request: (api) => put(api, "a.b", {}),
    expected: { status: 400, errno: 107, details: ["path:null"] }
  }),
  define({
    name: "lets nobody begin a draft who may publish nowhere",
    request: (api) => put(api, api.channel, { to: { channels: [api.channel] } }, {}, api.me),
    expected: { status: 403, errno: 121 }
  }),
  ...(["GET", "DELETE"] as const).flatMap((method) => [
    define<Stored>({
      name: `knows no draft of another author to ${method} for a caller without rights`,
      given: (api) => drafted(api),
      request: (api, { id }) => of(api, method, id, api.me),
      expected: (_, { id }) => ({
        status: 404,
        errno: 110,
        body: { details: { id, resource_name: "draft" } }
      })
    }),
    define({
      name: `knows no draft to ${method} that was never stored`,
      request: (api) => of(api, method, api.channel),
      expected: { status: 404, errno: 110 }
    }),
    define<Stored>({
      name: `needs a caller to ${method} a draft`,
      given: (api) => drafted(api),
      request: (api, { id }) => of(api, method, id, null),
      expected: { status: 401 }
    })
  ]),
  define<Stored>({
    name: "knows no draft of another author that a caller without rights replaces",
    given: (api) => drafted(api),
    request: (api, { etag, id }) => put(api, id, {}, { "if-match": etag }, api.me),
    expected: { status: 404, errno: 110 }
  }),
  define<Stored>({
    name: "shows an operator a draft that names users",
    given: (api) => drafted(api, toUser(api)),
    request: (api, { id }) => of(api, "GET", id, api.target.operator),
    expected: (api) => ({ status: 200, body: { data: toUser(api) } })
  }),
  define<Stored>({
    name: "does not let an operator change the draft of another author",
    given: (api) => drafted(api),
    request: (api, { etag, id }) => put(api, id, {}, { "if-match": etag }, api.target.operator),
    expected: { status: 403, errno: 121 }
  }),
  define<Stored>({
    name: "deletes a draft, which is unknown then",
    given: (api) => drafted(api),
    request: (api, { etag, id }) => ({ ...of(api, "DELETE", id), headers: { "if-match": etag } }),
    expected: (_, { id }) => ({
      status: 200,
      exactly: { data: { id, last_modified: expect.any(Number), deleted: true } }
    }),
    also: async (_, api, { id }) => {
      expect((await api.send(of(api, "GET", id))).status).toBe(404)
      expect((await api.send(put(api, id, {}))).status).toBe(201)
    }
  }),
  define<Stored>({
    name: "does not delete a draft that changed meanwhile",
    given: (api) => drafted(api),
    request: (api, { id }) => ({ ...of(api, "DELETE", id), headers: { "if-match": '"1"' } }),
    expected: { status: 412, errno: 114 }
  }),
  define<ReadonlyArray<Stored>>({
    name: "lists drafts, the newest change first, in pages",
    given: async (api) => [await drafted(api), await drafted(api), await drafted(api)],
    request: (api) => ({ method: "GET", path: "/drafts?_limit=2", as: api.target.publisher }),
    expected: { status: 200, headers: { "Next-Page": /_token=/ } },
    also: async ({ headers, json }, api, [first, second, third]) => {
      const ids = (data: ReadonlyArray<{ readonly id: string }>) => data.map(({ id }) => id)
      const next = (headers["next-page"] as string).slice(api.target.origin.length)
      const rest = await api.send({ method: "GET", target: next, as: api.target.publisher })
      const all = [...ids(json.data), ...ids(rest.json.data)]
      // Other cases store theirs at the same time.
      const own = all.filter((id) => [first!.id, second!.id, third!.id].includes(id))
      expect(own).toEqual([third!.id, second!.id, first!.id].slice(0, own.length))
      expect(json.data).toHaveLength(2)
    }
  }),
  define<Stored>({
    name: "lists the drafts of one author alone",
    given: (api) => drafted(api),
    request: (api) => ({
      method: "GET",
      path: `/drafts?author=${encodeURIComponent(api.userId(api.target.publisher))}`,
      as: api.target.operator
    }),
    expected: { status: 200 },
    also: ({ json }, api) => {
      const author = api.userId(api.target.publisher)
      expect(json.data.length).toBeGreaterThan(0)
      for (const draft of json.data) expect(draft.author).toBe(author)
    }
  }),
  define<Stored>({
    name: "lists no draft that the caller may not see",
    given: (api) => drafted(api),
    request: { method: "GET", path: "/drafts" },
    expected: { status: 200, exactly: { data: [] } }
  }),
  define({
    name: "refuses two authors",
    request: { method: "GET", path: "/drafts?author=a&author=b" },
    expected: { status: 400, errno: 107, details: ["querystring:author"] }
  }),
  ...["/drafts", "/drafts/a", "/drafts/a/publish"].map((path) =>
    define({
      name: `needs a caller at ${path}`,
      request: { method: path.endsWith("publish") ? "POST" : "GET", path, as: null },
      expected: { status: 401 }
    })
  )
]
