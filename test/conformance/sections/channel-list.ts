// Contract 4.2: GET /channels, the channels that somebody joined and the caller may publish on.
import { expect } from "vitest"
import { until } from "../../support/client.ts"
import type { Api } from "../api.ts"
import { type Case, define } from "../table.ts"

const list = (api: Api, query: string, as: string | null = api.target.publisher) => ({
  ...{ method: "GET", path: `/channels?${query}`, as }
})

/** Registers users to these channels, and waits until the last one is listed. */
const joined = async (api: Api, names: ReadonlyArray<string>) => {
  for (const name of names) await api.registered(`${api.channel}-${name}`)
  await api.registered(`${api.channel}-${names[0]}`, `${api.me}2`)
  await until(
    () => api.send(list(api, `prefix=${api.channel}`)),
    ({ json }) => json.data?.length === names.length
  )
}

export const channelList: ReadonlyArray<Case> = [
  define({
    name: "lists the channels whose names begin so in any case, in order",
    given: (api) => joined(api, ["news", "News%20%2A", "sport", "nEws.caf%C3%A9", "ne"]),
    request: (api) => list(api, `prefix=${api.channel.toUpperCase()}-NEW&other=x`),
    expected: (api) => ({
      status: 200,
      exactly: {
        data: [
          { id: `${api.channel}-news`, registrations: 2 },
          { id: `${api.channel}-News *`, registrations: 1 },
          { id: `${api.channel}-nEws.café`, registrations: 1 }
        ]
      },
      headers: { "Next-Page": null, "Cache-Control": "no-cache, no-store" }
    }),
    also: async (_, api) => {
      // A channel that its last user left is listed no more.
      const leave = { method: "DELETE", path: `/channels/${api.channel}-sport/registration` }
      await api.send(leave)
      const prefix = `prefix=${encodeURIComponent(`${api.channel}-s`)}`
      expect((await api.send(list(api, prefix))).json).toEqual({ data: [] })
    }
  }),
  define({
    name: "lists channels in pages, each on one of them",
    given: (api) => joined(api, ["b", "a", "c"]),
    request: (api) => list(api, `prefix=${api.channel}-&_limit=2`),
    expected: (api) => ({
      status: 200,
      body: { data: [{ id: `${api.channel}-a` }, { id: `${api.channel}-b` }] },
      headers: { "Next-Page": /\/v1\/channels\?prefix=[^&]+&_limit=2&_token=/ }
    }),
    also: async ({ headers }, api) => {
      const { pathname, search } = new URL(String(headers["next-page"]))
      const next = { method: "GET", target: `${pathname}${search}` }
      const last = await api.send({ ...next, as: api.target.publisher })
      expect(last.json).toEqual({ data: [{ id: `${api.channel}-c`, registrations: 1 }] })
      expect(last.headers["next-page"]).toBeUndefined()
      // The token of a page is signed for one user.
      expect((await api.send(next)).status).toBe(400)
    }
  }),
  define({
    name: "lists no channels to a user who may publish on none, registered or not",
    given: (api) => joined(api, ["news"]),
    request: (api) => list(api, "", api.me),
    expected: { status: 200, exactly: { data: [] } }
  }),
  define({
    name: "lists no channels to nobody",
    request: (api) => list(api, "", null),
    expected: { status: 401, errno: 104 }
  }),
  ...["x".repeat(256), "a&prefix=b"].map((prefix) =>
    define({
      name: `refuses channels that begin with ${prefix.slice(0, 12)}`,
      request: (api) => list(api, `prefix=${prefix}`),
      expected: { status: 400, errno: 107, details: ["querystring:prefix"] }
    })
  )
]
