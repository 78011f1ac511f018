// Contract 3.7 to 3.10: counts, tombstones, fields, pages.
import { expect } from "vitest"
import type { Api, StoredObject } from "../api.ts"
import { type Case, define } from "../table.ts"
import { letters, zoo } from "../zoo.ts"

const badTokens = [
  "nonsense",
  "e30",
  Buffer.from('{"last_object":[],"offset":1}').toString("base64"),
  Buffer.from("[]").toString("base64")
]

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
  ...["s=", "has_n=", "like_endpoint=", "in_id=", "gt_last_modified=", "_limit=", "n=&n="].map(
    (query) =>
      define({
        name: `takes an empty value for none: ?${query}`,
        given: zoo,
        request: { method: "GET", path: `/subscriptions?has_n=true&${query}` },
        expected: { status: 200 },
        also: (response) => expect(letters(response)).toHaveLength(4)
      })
  ),
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
  })
]
