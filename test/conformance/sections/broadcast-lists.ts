// Contract 4.9: lists of broadcasts, the newest first.
import { expect } from "vitest"
import { until } from "../../support/client.ts"
import type { Api, Request } from "../api.ts"
import type { HttpResponse } from "../http.ts"
import { type Case, define } from "../table.ts"
import { locationOf, publish } from "./broadcasts.ts"
import { acceptedAt } from "./direct.ts"
import { idIn } from "./given.ts"

interface Shown {
  readonly id: string
  readonly state: string
  readonly publisher: string
  readonly to: { readonly channels: ReadonlyArray<string>; readonly users: number }
}

const idsOf = ({ json }: HttpResponse): ReadonlyArray<string> =>
  (json.data as ReadonlyArray<Shown>).map(({ id }) => id)

/** The list of the channel of this case, which a replica may have a moment later. */
const list = (api: Api, query = "", as: string | null = api.target.publisher): Request => ({
  method: "GET",
  path: `/channels/${api.channel}/broadcasts${query}`,
  as
})
const all = (api: Api, query = "", as: string | null = api.target.publisher): Request => ({
  method: "GET",
  path: `/broadcasts${query}`,
  as
})

/** Ids of that many broadcasts to the channel, the newest first, once the list has them. */
const published = async (api: Api, count: number) => {
  const ids: Array<string> = []
  for (let i = 0; i < count; i++) ids.unshift(idIn(await locationOf(api)))
  await until(
    () => api.send(list(api)),
    (response) => idsOf(response).length === count
  )
  return ids
}

/** The ids on a page and on all that follow. */
const idsOnPages = async (first: HttpResponse, api: Api) => {
  const seen = [...idsOf(first)]
  for (let next = first.headers["next-page"]; next !== undefined; ) {
    const { pathname, search } = new URL(String(next))
    const as = api.target.publisher
    const page = await api.send({ method: "GET", target: `${pathname}${search}`, as })
    seen.push(...idsOf(page))
    next = page.headers["next-page"]
  }
  return seen
}

/** When a broadcast was accepted, as a time of RFC 3339. */
const acceptedOf = async (api: Api, id: string) => {
  const { json } = await api.send({ ...all(api), path: `/broadcasts/${id}` })
  return new Date(json.data.accepted_at).toISOString()
}

const badQueries: ReadonlyArray<readonly [name: string, query: string]> = [
  ["an unknown state", "?state=sent"],
  ["an empty state", "?state="],
  ["a time that is none", "?since=yesterday"],
  ["a time without its zone", "?before=2026-01-01T00:00:00"],
  ["a month that is none", "?before=2026-13-01T00:00:00Z"],
  ["a state that is given twice", "?state=running&state=finished"],
  ["a limit that is no number", "?_limit=many"],
  ["a token that nobody signed", "?_token=abc.def"]
]

export const broadcastLists: ReadonlyArray<Case> = [
  define<ReadonlyArray<string>>({
    name: "lists the broadcasts to a channel, the newest first, and no others",
    given: async (api) => {
      await api.send(publish(api, {}, {}, `${api.channel}x`))
      const ids = await published(api, 3)
      // A broadcast has more members once it is planned.
      await until(
        () => api.send({ ...all(api), path: `/broadcasts/${ids[0]}` }),
        ({ json }) => json.data.finished
      )
      return ids
    },
    request: (api) => list(api),
    expected: {
      status: 200,
      headers: { "Cache-Control": "no-cache, no-store", "Next-Page": null }
    },
    also: async (response, api, ids) => {
      expect(idsOf(response)).toEqual(ids)
      const [newest] = response.json.data as ReadonlyArray<Shown>
      const single = await api.send({ ...all(api), path: `/broadcasts/${ids[0]}` })
      expect(newest).toMatchObject({
        publisher: api.userId(api.target.publisher),
        to: { channels: [api.channel], users: 0 }
      })
      const details = ["reasons", "retries", "push_services"]
      expect(Object.keys(single.json.data)).toEqual([...Object.keys(newest!), ...details])
    }
  }),
  define<ReadonlyArray<string>>({
    name: "lists broadcasts in pages, each on one of them",
    given: (api) => published(api, 5),
    request: (api) => list(api, "?_limit=2"),
    expected: { status: 200, headers: { "Next-Page": /broadcasts\?_limit=2&_token=/ } },
    also: async (first, api, ids) => {
      expect(await idsOnPages(first, api)).toEqual(ids)
    }
  }),
  define<{ readonly ids: ReadonlyArray<string>; readonly query: string }>({
    name: "lists the broadcasts that the caller may see in pages, each on one of them",
    given: async (api) => {
      const ids = await published(api, 5)
      const since = encodeURIComponent(await acceptedOf(api, ids.at(-1)!))
      return { ids, query: `?_limit=2&since=${since}` }
    },
    request: (api, { query }) => all(api, query),
    expected: { status: 200, headers: { "Next-Page": /\/v1\/broadcasts\?.*_limit=2&_token=/ } },
    also: async (first, api, { ids }) => {
      expect(idsOf(first)).toHaveLength(2)
      // Other cases publish meanwhile.
      const seen = await idsOnPages(first, api)
      expect(seen.filter((id) => ids.includes(id))).toEqual(ids)
    }
  }),
  define<{ readonly ids: ReadonlyArray<string>; readonly time: string }>({
    name: "lists what was accepted at a time or later, and before it",
    given: async (api) => {
      const ids = await published(api, 3)
      return { ids, time: encodeURIComponent(await acceptedOf(api, ids[1]!)) }
    },
    request: (api, { time }) => list(api, `?since=${time}`),
    expected: { status: 200 },
    also: async (response, api, { ids, time }) => {
      // The oldest may be of the same millisecond.
      expect(idsOf(response).slice(0, 2)).toEqual(ids.slice(0, 2))
      const before = await api.send(list(api, `?before=${time}`))
      expect([...idsOf(response), ...idsOf(before)]).toEqual(ids)
    }
  }),
  define<ReadonlyArray<string>>({
    name: "lists by times that are far away",
    given: (api) => published(api, 1),
    request: (api) => list(api, "?since=0001-01-01T00:00:00Z&before=2999-01-01T00:00:00Z"),
    expected: { status: 200 },
    also: async (response, api, ids) => {
      expect(idsOf(response)).toEqual(ids)
      expect(idsOf(await api.send(list(api, "?since=2999-01-01T00:00:00Z")))).toEqual([])
      expect(idsOf(await api.send(list(api, "?before=0001-01-01T00:00:00Z")))).toEqual([])
    }
  }),
  define<ReadonlyArray<string>>({
    name: "lists what is in a state, and what a publisher published",
    given: async (api) => {
      await api.registered()
      await api.stored()
      const ids = await published(api, 2)
      const path = `/broadcasts/${ids[1]}`
      const body = { data: { state: "cancelled" } }
      await api.send({ method: "PATCH", path, body, as: api.target.publisher })
      return ids
    },
    request: (api) => list(api, "?state=cancelled"),
    expected: { status: 200 },
    also: async (response, api, ids) => {
      expect(idsOf(response)).toEqual([ids[1]])
      const none = await api.send(list(api, "?state=rejected"))
      expect([none.status, idsOf(none)]).toEqual([200, []])
      const by = (id: string) => `?publisher=${encodeURIComponent(id)}`
      const own = await api.send(list(api, by(api.userId(api.target.publisher))))
      expect(idsOf(own)).toEqual(ids)
      expect(idsOf(await api.send(list(api, by(api.userId()))))).toEqual([])
    }
  }),
  define<string>({
    name: "lists broadcasts to users to who may send them, without naming the users",
    given: async (api) => {
      const id = idIn(await acceptedAt(api, { to: { users: [api.userId()] } }))
      await until(
        () => api.send(all(api)),
        (response) => idsOf(response).includes(id)
      )
      return id
    },
    request: (api) => all(api),
    expected: { status: 200 },
    also: ({ json, text }, api, id) => {
      const found = (json.data as ReadonlyArray<Shown>).find((each) => each.id === id)
      expect(found?.to).toEqual({ channels: [], users: 1, except_users: 0 })
      expect(text).not.toContain(api.userId())
    }
  }),
  define<ReadonlyArray<string>>({
    name: "lists no broadcasts that the caller may not see",
    given: (api) => published(api, 1),
    request: (api) => all(api, "", api.me),
    expected: { status: 200, exactly: { data: [] } }
  }),
  define({
    name: "lists no broadcasts of an unknown channel",
    request: (api) => list(api),
    expected: { status: 200, exactly: { data: [] } }
  }),
  define({
    name: "lists the broadcasts to a channel to its publishers only",
    request: (api) => list(api, "", api.me),
    expected: { status: 403, errno: 121 }
  }),
  ...[list, all].map((request, i) =>
    define({
      name: `lists no broadcasts ${i === 0 ? "to a channel " : ""}to nobody`,
      request: (api) => request(api, "", null),
      expected: { status: 401, errno: 104 }
    })
  ),
  ...badQueries.map(([name, query]) =>
    define({
      name: `lists no broadcasts by ${name}`,
      request: (api) => all(api, query),
      expected: { status: 400, errno: 107 }
    })
  )
]
