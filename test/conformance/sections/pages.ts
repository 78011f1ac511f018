// Contract 3.10: pages of a list, and removal page by page.
import { expect } from "vitest"
import type { Api, StoredObject } from "../api.ts"
import type { HttpResponse } from "../http.ts"
import { type Case, define } from "../table.ts"
import { letters, zoo } from "../zoo.ts"

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

export const pages: ReadonlyArray<Case> = [
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
  define<string>({
    name: "leaves a page token of DELETE unused where a precondition fails",
    given: async (api) => {
      await zoo(api)
      const { headers } = await api.send({ method: "DELETE", path: "/subscriptions?_limit=1" })
      return (headers["next-page"] as string).slice(api.target.origin.length)
    },
    request: (_, target) => ({ method: "DELETE", target, headers: { "If-Match": '"1"' } }),
    expected: { status: 412 },
    also: async (_, api, target) => {
      expect((await api.send({ method: "DELETE", target })).status).toBe(200)
      expect((await api.list()).json.data).toHaveLength(3)
    }
  }),
  define<string>({
    name: "refuses a page token of another list",
    given: async (api) => {
      await zoo(api)
      return new URL((await api.list("?_limit=2")).headers["next-page"] as string).search
    },
    request: (_, search) => ({ method: "GET", path: `/registrations${search}` }),
    expected: { status: 400, errno: 107, details: ["querystring:null"] }
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
