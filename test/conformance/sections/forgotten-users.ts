// Contract 4.7: DELETE / and DELETE /users/{user}, which erase a user as a reader.
import { expect } from "vitest"
import type { Api, Request } from "../api.ts"
import { type Case, define } from "../table.ts"

const forget = { method: "DELETE", path: "/" }
const erase = (api: Api, as: string | null): Request => ({
  method: "DELETE",
  path: `/users/${encodeURIComponent(api.userId())}`,
  as
})
const accepted = { status: 202, exactly: { code: 202, message: "Accepted" } }

export const forgottenUsers: ReadonlyArray<Case> = [
  define({
    name: "forgets a user in every channel and browser, and nobody else",
    given: async (api) => {
      await api.stored("of-another", {}, `${api.me}2`)
      for (const channel of [api.channel, `a-${api.channel}`, `b-${api.channel}`])
        await api.registered(channel)
      await api.registered(api.channel, `${api.me}2`)
      await api.stored("a")
      await api.stored("b")
    },
    request: forget,
    expected: accepted,
    also: async (_, api) => {
      expect((await api.list()).json.data).toEqual([])
      expect((await api.list("?_since=0")).json.data).toEqual([])
      const registrations = { method: "GET", path: "/registrations" }
      expect((await api.send(registrations)).json.data).toEqual([])
      const other = await api.send({ ...registrations, as: `${api.me}2` })
      expect(other.json.data).toEqual([{ id: api.channel }])
      const kept = await api.send({ method: "GET", path: "/subscriptions", as: `${api.me}2` })
      expect(kept.json.data).toHaveLength(1)
      const channel = { method: "GET", path: `/channels/${api.channel}`, as: `${api.me}2` }
      expect((await api.send(channel)).json.data.registrations).toBe(1)
    }
  }),
  define({ name: "forgets a user of whom nothing is stored", request: forget, expected: accepted }),
  define({
    name: "stores what a forgotten user stores anew",
    given: async (api) => {
      await api.stored()
      await api.registered()
      await api.send(forget)
      await api.registered()
    },
    request: (api) => ({
      method: "POST",
      path: "/subscriptions",
      body: { data: api.subscription() }
    }),
    expected: { status: 201 },
    also: async (_, api) => {
      const registrations = await api.send({ method: "GET", path: "/registrations" })
      expect(registrations.json.data).toEqual([{ id: api.channel }])
    }
  }),
  define({
    name: "forgets nobody without credentials",
    request: { ...forget, as: null },
    expected: { status: 401, errno: 104 }
  }),
  ...(["operator", "publisher"] as const).map((who) =>
    define({
      name: `erases a user for ${who === "operator" ? "an operator" : "a site's server"}`,
      given: async (api) => {
        await api.stored()
        await api.registered()
      },
      request: (api) => erase(api, api.target[who]),
      expected: accepted,
      also: async (_, api) => {
        expect((await api.list("?_since=0")).json.data).toEqual([])
        const registrations = await api.send({ method: "GET", path: "/registrations" })
        expect(registrations.json.data).toEqual([])
      }
    })
  ),
  define({
    name: "erases nobody for another user, nor for the user by this path",
    request: (api) => erase(api, api.me),
    expected: { status: 403, errno: 121 }
  }),
  define({
    name: "erases nobody by this path without credentials",
    request: (api) => erase(api, null),
    expected: { status: 401, errno: 104 }
  }),
  define({
    name: "erases no user whose id nobody can have",
    request: (api) => ({ ...erase(api, api.target.operator), path: "/users/nobody" }),
    expected: { status: 400, errno: 107 }
  })
]
