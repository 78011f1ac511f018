// Contract 4.15: what becomes of a draft that somebody publishes.
import { expect } from "vitest"
import type { Api, Request } from "../api.ts"
import { type Case, define } from "../table.ts"
import { accepted } from "./broadcasts.ts"
import { drafted, full, of, type Stored } from "./drafts.ts"

const publish = (
  api: Api,
  { etag, id }: Stored,
  body: unknown = undefined,
  as: string | null = api.target.publisher
): Request => ({
  method: "POST",
  path: `/drafts/${id}/publish`,
  as,
  headers: { "if-match": etag },
  ...(body === undefined ? {} : { body })
})

const unfinished: ReadonlyArray<readonly [name: string, data: object, details: string]> = [
  ["nobody to send to", { data: {} }, "body:to"],
  ["no channel and no user", { data: {}, to: { channels: [] } }, "body:to"],
  ["a start that is no time", { at: "tomorrow", to: { channels: ["a"] } }, "body:at"],
  ["a rate of 0", { rate: 0, to: { channels: ["a"] } }, "body:rate"],
  [
    "a share of 2",
    { pause_when: { failed_share: 2 }, to: { channels: ["a"] } },
    "body:pause_when.failed_share"
  ],
  ["a TTL of a year", { ttl: 31_536_000, to: { channels: ["a"] } }, "header:TTL"],
  ["a topic with a blank", { topic: "a b", to: { channels: ["a"] } }, "header:Topic"],
  [
    "a notification without its title",
    {
      data: { web_push: 8030, notification: { navigate: "https://example.org/" } },
      to: { channels: ["a"] }
    },
    "body:data.notification.title"
  ]
]

export const draftPublications: ReadonlyArray<Case> = [
  define<Stored>({
    name: "does not let an operator publish, who has no right to",
    given: (api) => drafted(api),
    request: (api, stored) => publish(api, stored, undefined, api.target.operator),
    expected: { status: 403, errno: 121 }
  }),
  define<Stored>({
    name: "publishes a draft, which ends with it",
    given: (api) => drafted(api),
    request: (api, stored) => publish(api, stored),
    expected: (api) => ({
      status: 202,
      exactly: {
        ...accepted.body,
        warnings: [`Nobody is registered to the channel ${api.channel}`]
      },
      headers: { Location: new RegExp(`^${api.root}/broadcasts/[0-9]+$`) }
    }),
    also: async ({ json }, api, { id }) => {
      expect((await api.send(of(api, "GET", id))).status).toBe(404)
      const path = `/broadcasts/${json.id}`
      const shown = await api.send({ method: "GET", path, as: api.target.publisher })
      expect(shown.json.data).toMatchObject({
        name: "For the evening",
        data: { n: 1 },
        rate: 1_000,
        pause_when: { failed_share: 0.2 }
      })
    }
  }),
  define<Stored>({
    name: "publishes a draft once, however often the request is repeated",
    given: (api) => drafted(api),
    request: (api, stored) => publish(api, stored),
    expected: { status: 202 },
    also: async (first, api, stored) => {
      const again = await api.send(publish(api, stored))
      expect(again.status).toBe(202)
      expect(again.json).toEqual(first.json)
      const other = await api.send(publish(api, { ...stored, etag: '"1"' }))
      expect(other.status).toBe(404)
    }
  }),
  define<Stored>({
    name: "does not publish a draft without its ETag",
    given: (api) => drafted(api),
    request: (api, { id }) => of(api, "POST", `${id}/publish`),
    expected: { status: 428, errno: 125, error: "precondition-required" }
  }),
  ...(["*", '"1", "2"'] as const).map((etag) =>
    define<Stored>({
      name: `does not take ${etag} for the ETag of what was reviewed`,
      given: (api) => drafted(api),
      request: (api, stored) => publish(api, { ...stored, etag }),
      expected: { status: 400, errno: 107, details: ["header:If-Match"] }
    })
  ),
  define<Stored>({
    name: "does not publish a draft that changed since it was reviewed",
    given: (api) => drafted(api),
    request: (api, stored) => publish(api, { ...stored, etag: '"1"' }),
    expected: (api, { id }) => ({
      status: 412,
      errno: 114,
      body: { details: { existing: { id, ...full(api) } } }
    }),
    also: async (_, api, { id }) => {
      expect((await api.send(of(api, "GET", id))).status).toBe(200)
    }
  }),
  ...unfinished.map(([name, data, details]) =>
    define<Stored>({
      name: `does not publish a draft with ${name}`,
      given: (api) => drafted(api, data),
      request: (api, stored) => publish(api, stored),
      expected: { status: 400, details: [details] },
      also: async (_, api, { id }) => {
        expect((await api.send(of(api, "GET", id))).status).toBe(200)
      }
    })
  ),
  define<Stored>({
    name: "does not publish a draft that fits into no push",
    given: (api) => drafted(api, { data: { x: "x".repeat(3_990) }, to: { channels: ["a"] } }),
    request: (api, stored) => publish(api, stored),
    expected: { status: 413, error: "payload-too-large" }
  }),
  define<Stored>({
    name: "counts whom a draft would reach, and leaves it",
    given: (api) => drafted(api),
    request: (api, stored) => publish(api, stored, { dry_run: true }),
    expected: { status: 200, body: { data: { people: 0, browsers: 0 } } },
    also: async (_, api, { id }) => {
      expect((await api.send(of(api, "GET", id))).status).toBe(200)
    }
  }),
  define<Stored>({
    name: "refuses another member beside the options of a publication",
    given: (api) => drafted(api),
    request: (api, stored) => publish(api, stored, { data: {} }),
    expected: { status: 400, errno: 109, details: ["body:"] }
  })
]
