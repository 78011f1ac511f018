// Contract 3.7 to 3.10: counts, tombstones, fields, pages.
import { expect } from "vitest"
import type { Api, StoredObject } from "../api.ts"
import type { HttpResponse } from "../http.ts"
import { type Case, define } from "../table.ts"
import { letters, zoo } from "../zoo.ts"

const badTokens = [
  "nonsense",
  "e30",
  Buffer.from('{"last_object":[],"offset":1}').toString("base64"),
  Buffer.from("[]").toString("base64")
]

/** Follows Next-Page from the first page to the last. */
const walk = async (
  api: Api,
  method: string,
  first: string
): Promise<ReadonlyArray<HttpResponse>> => {
  const responses: Array<HttpResponse> = []
  let target: string | undefined = `/v1/subscriptions${first}`
  while (target !== undefined) {
    const response: HttpResponse = await api.send({ method, target })
    if (response.status !== 200) throw new Error(`${response.status}: ${response.text}`)
    responses.push(response)
    const next = response.headers["next-page"] as string | undefined
    if (next !== undefined) expect(next.startsWith(`${api.root}/subscriptions?`), next).toBe(true)
    target = next?.slice(api.target.origin.length)
  }
  return responses
}

const mixed = async (api: Api) => {
  const objects = await zoo(api)
  const removed = await api.removed(objects[1]!.id)
  return { objects, removed }
}

export const listing: ReadonlyArray<Case> = [
  ...badTokens.map((token) =>
    define({
      name: `refuses the page token ${token}`,
      request: { method: "GET", path: `/subscriptions?_token=${encodeURIComponent(token)}` },
      expected: { status: 400, errno: 107, details: ["querystring:null"] }
    })
  ),
  define({
    name: "takes an empty page token for none",
    request: { method: "GET", path: "/subscriptions?_token=" },
    expected: { status: 200 }
  }),
  define<ReadonlyArray<StoredObject>>({
    name: "finds one by its id, bare or quoted",
    given: zoo,
    request: (_, objects) => ({
      method: "GET",
      path: `/subscriptions?id="${objects[2]!.id}"&in_id=${objects[2]!.id},abc`
    }),
    expected: { status: 200 },
    also: (response) => expect(letters(response)).toBe("c")
  }),
  define<ReadonlyArray<StoredObject>>({
    name: "counts on HEAD what GET counts, ignoring the limit",
    given: zoo,
    request: { method: "HEAD", path: "/subscriptions?_limit=2&has_n=true" },
    expected: {
      status: 200,
      headers: {
        "Total-Records": "4",
        "Total-Objects": "4",
        "Next-Page": /_limit=2/,
        ETag: /./,
        "Last-Modified": /GMT$/
      }
    }
  }),
  define({
    name: "lists without caching",
    request: { method: "GET", path: "/subscriptions" },
    expected: {
      status: 200,
      headers: { "Cache-Control": "no-cache, no-store", "Next-Page": null, "Total-Records": "0" }
    }
  }),
  ...[
    ["_since=0", "-edca"],
    ["_since=null", "-edca"],
    ["_before=9000000000000", "edca-"],
    ["_to=1", ""],
    ["gt_last_modified=0&has_n=true", "dca"],
    ["_since=0&deleted=true", "-"],
    ["_since=0&not_deleted=true", "edca"],
    ["deleted=true", ""],
    ["min_last_modified=0&_sort=last_modified", "acde-"]
  ].map(([query, wanted]) =>
    define({
      name: `shows tombstones by timestamp: ?${query}`,
      given: mixed,
      // A bound may be at most a day ahead, so 9000000000000 becomes a time in an hour.
      request: {
        method: "GET",
        path: `/subscriptions?${query!.replace("9000000000000", String(Date.now() + 3_600_000))}`
      },
      expected: {
        status: 200,
        headers: { "Total-Records": String(wanted!.replace("-", "").length) }
      },
      also: (response) =>
        expect(letters(response)).toBe(query!.startsWith("_before") ? "-edca" : wanted)
    })
  ),
  define<Awaited<ReturnType<typeof mixed>>>({
    name: "shows a tombstone as id, timestamp and mark",
    given: mixed,
    request: (_, { objects }) => ({
      method: "GET",
      path: `/subscriptions?_since="${objects[4]!.last_modified}"`
    }),
    expected: (_, { objects, removed }) => ({
      status: 200,
      exactly: { data: [{ id: objects[1]!.id, last_modified: removed, deleted: true }] }
    })
  }),
  define<Awaited<ReturnType<typeof mixed>>>({
    name: "shows each change once to who polls with the last timestamp",
    given: async (api) => {
      const given = await mixed(api)
      const { headers } = await api.list()
      const { json } = await api.list(`?_since=${headers.etag}`)
      expect(json.data).toEqual([])
      await api.stored("f")
      expect(letters(await api.list(`?_since=${headers.etag}`))).toBe("f")
      return given
    },
    request: { method: "GET", path: "/subscriptions" },
    expected: { status: 200 }
  }),
  define({
    name: "warns of _to, which is deprecated",
    request: { method: "GET", path: "/subscriptions?_to=1" },
    expected: { status: 200, headers: { Alert: /"code":"soft-eol"/ } }
  }),
  define<ReadonlyArray<StoredObject>>({
    name: "shows only the fields asked for, and always id and timestamp",
    given: zoo,
    request: { method: "GET", path: "/subscriptions?_fields=n,deep.at,unknown,keys.auth&n=1" },
    expected: (api, objects) => ({
      status: 200,
      exactly: {
        data: [
          {
            id: objects[0]!.id,
            last_modified: objects[0]!.last_modified,
            n: 1,
            deep: { at: "one" },
            keys: { auth: api.subscription().keys.auth }
          }
        ]
      }
    })
  }),
  define<StoredObject>({
    name: "shows only the fields asked for of one subscription",
    given: (api) => api.stored("a", { n: 1 }),
    request: (_, { id }) => ({ method: "GET", path: `/subscriptions/${id}?_fields=n` }),
    expected: (_, { id, last_modified }) => ({
      status: 200,
      exactly: { data: { id, last_modified, n: 1 } }
    })
  }),
  ...[
    "",
    "&_sort=n",
    "&_sort=-mixed",
    "&_sort=deep.at,-flag",
    "&has_n=true",
    "&_since=0",
    "&_fields=n"
  ].map((more) =>
    define({
      name: `leads through all pages, showing each object once: ?_limit=2${more}`,
      given: zoo,
      request: { method: "GET", path: `/subscriptions?_limit=99${more}` },
      expected: { status: 200 },
      also: async ({ json }, api) => {
        const pages = await walk(api, "GET", `?_limit=2${more}`)
        expect(pages.flatMap((page) => page.json.data)).toEqual(json.data)
        expect(new Set(pages.map(({ headers }) => headers["total-records"])).size).toBe(1)
        expect(pages.every((page) => page.json.data.length <= 2)).toBe(true)
      }
    })
  ),
  define({
    name: "keeps the parameters of a list in Next-Page",
    given: zoo,
    request: { method: "GET", path: "/subscriptions?_sort=n&like_name=*&_limit=1&has_n=true" },
    expected: {
      status: 200,
      headers: { "Next-Page": /\/subscriptions\?_sort=n&like_name=\*&has_n=true&_limit=1&_token=/ }
    }
  }),
  define({
    name: "takes a page token of GET as often as it comes",
    given: async (api) => {
      await zoo(api)
      return (await api.list("?_limit=2")).headers["next-page"] as string
    },
    request: (api, next) => ({
      method: "GET",
      target: (next as string).slice(api.target.origin.length)
    }),
    expected: { status: 200 },
    also: async (response, api, next) => {
      const again = await api.send({
        method: "GET",
        target: (next as string).slice(api.target.origin.length)
      })
      expect(letters(again)).toBe(letters(response))
    }
  }),
  define<ReadonlyArray<StoredObject>>({
    name: "removes page by page, in the order asked for",
    given: zoo,
    request: { method: "HEAD", path: "/subscriptions" },
    expected: { status: 200 },
    also: async (_, api, objects) => {
      const pages = await walk(api, "DELETE", "?_limit=2&_sort=n")
      const names = new Map(objects.map(({ endpoint, id }) => [id, endpoint.at(-1)]))
      expect(
        pages.map(({ json }) => json.data.map(({ id }: StoredObject) => names.get(id)).join(""))
      ).toEqual(["da", "cb", "e"])
      expect(pages.map(({ headers }) => headers["total-records"])).toEqual(["5", "3", "1"])
      expect((await api.list()).json.data).toEqual([])
    }
  }),
  define<string>({
    name: "takes a page token of DELETE once",
    given: async (api) => {
      await zoo(api)
      const { headers } = await api.send({ method: "DELETE", path: "/subscriptions?_limit=1" })
      const next = (headers["next-page"] as string).slice(api.target.origin.length)
      expect((await api.send({ method: "DELETE", target: next })).status).toBe(200)
      return next
    },
    request: (_, target) => ({ method: "DELETE", target }),
    expected: { status: 400, errno: 107, details: ["querystring:null"] },
    also: async (_, api) => expect((await api.list()).json.data).toHaveLength(3)
  }),
  define<ReadonlyArray<StoredObject>>({
    name: "removes only what matches",
    given: zoo,
    request: { method: "DELETE", path: "/subscriptions?has_n=true&max_n=2.5" },
    expected: { status: 200, headers: { "Total-Records": "3" } },
    also: async (_, api) => expect(letters(await api.list())).toBe("eb")
  }),
  define<StoredObject>({
    name: "counts on HEAD without sending, and says what GET would say",
    given: (api) => api.stored("a", { x: "x".repeat(1_000) }),
    request: { method: "HEAD", path: "/subscriptions?_since=0" },
    expected: { status: 200, headers: { "Total-Records": "1", "Next-Page": null } },
    also: async ({ headers }, api) => {
      const { headers: full } = await api.list("?_since=0")
      const { "content-length": _, date: __, ...named } = full
      expect(headers).toMatchObject(named)
    }
  }),
  ...["GET", "HEAD", "DELETE"].map((method) =>
    define({
      name: `refuses ${method} of a page whose next one has too long a URL`,
      given: async (api) => {
        for (const name of ["a", "b"]) await api.stored(name, { x: "x".repeat(3_500) })
      },
      request: { method, path: `/subscriptions?_limit=1&_sort=x&not_y=${"y".repeat(4_000)}` },
      expected:
        method === "HEAD"
          ? { status: 400 }
          : { status: 400, errno: 107, details: ["querystring:null"], message: /next page/ },
      also: async (_, api) => {
        const { headers, json } = await api.list("?_limit=1&_sort=x")
        expect(json.data).toHaveLength(1)
        expect(headers["total-records"]).toBe("2")
        expect(headers["next-page"]!.length).toBeLessThan(8_000)
      }
    })
  )
]
