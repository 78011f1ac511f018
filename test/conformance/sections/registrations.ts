// Contract 4.3: GET /registrations, the channels of the caller.
import { expect } from "vitest"
import { type Case, define } from "../table.ts"
import { names } from "./channels.ts"

export const registrations: ReadonlyArray<Case> = [
  define({
    name: "lists the channels that a user is registered to, and no others",
    given: async (api) => {
      for (const [, path] of names) await api.registered(path)
      await api.registered(api.channel)
      await api.registered("of-another", `${api.me}2`)
      const path = `/channels/${api.channel}/registration`
      await api.send({ method: "DELETE", path })
    },
    request: { method: "GET", path: "/registrations?id=ignored" },
    expected: {
      status: 200,
      exactly: { data: names.map(([, , id]) => ({ id })) },
      headers: {
        "Total-Records": String(names.length),
        "Next-Page": null,
        "Cache-Control": "no-cache, no-store"
      }
    }
  }),
  define({
    name: "lists registrations in pages, each on one of them",
    given: async (api) => {
      for (const name of ["c", "b", "a", "b"]) await api.registered(`${name}-${api.channel}`)
    },
    request: { method: "GET", path: "/registrations?_limit=2" },
    expected: (api) => ({
      status: 200,
      exactly: { data: ["c", "b"].map((name) => ({ id: `${name}-${api.channel}` })) },
      headers: { "Total-Records": "3", "Next-Page": /\/v1\/registrations\?_limit=2&_token=/ }
    }),
    also: async ({ headers }, api) => {
      const { pathname, search } = new URL(String(headers["next-page"]))
      const last = await api.send({ method: "GET", target: `${pathname}${search}` })
      expect(last.json).toEqual({ data: [{ id: `a-${api.channel}` }] })
      expect(last.headers["next-page"]).toBeUndefined()
      // The token of a page is signed for one user.
      const other = { method: "GET", target: `${pathname}${search}`, as: `${api.me}2` }
      expect((await api.send(other)).status).toBe(400)
    }
  }),
  define({
    name: "lists no registrations of who has none",
    request: { method: "GET", path: "/registrations" },
    expected: { status: 200, exactly: { data: [] }, headers: { "Total-Records": "0" } }
  }),
  define({
    name: "lists nobody's registrations to nobody",
    request: { method: "GET", path: "/registrations", as: null },
    expected: { status: 401, errno: 104 }
  })
]
