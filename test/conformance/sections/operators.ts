// Contract 7.12: operators see and stop all broadcasts, and have no other right.
import { expect } from "vitest"
import { until } from "../../support/client.ts"
import type { Api, Request } from "../api.ts"
import { type Case, define } from "../table.ts"
import { locationOf } from "./broadcasts.ts"
import { acceptedAt } from "./direct.ts"
import { idIn, running } from "./given.ts"

const by = (api: Api, method: string, path: string, body?: unknown): Request => ({
  method,
  path,
  as: api.target.operator,
  ...(body === undefined ? {} : { body })
})

/** A broadcast of the publisher to the user of the case. */
const toUser = (api: Api) => acceptedAt(api, { to: { users: [api.userId()] } })

const cancelled = { data: { state: "cancelled" } }

const refused: ReadonlyArray<
  readonly [name: string, request: (api: Api) => readonly [string, string, unknown?]]
> = [
  ["publish on a channel", ({ channel }) => ["POST", `/channels/${channel}`, {}]],
  [
    "publish on channels",
    ({ channel }) => ["POST", "/broadcasts", { to: { channels: [channel] } }]
  ],
  ["publish to users", (api) => ["POST", "/broadcasts", { to: { users: [api.userId()] } }]],
  ["read a channel", ({ channel }) => ["GET", `/channels/${channel}`]],
  ["read the members of a channel", ({ channel }) => ["GET", `/channels/${channel}/members`]],
  [
    "log a user out",
    (api) => ["DELETE", `/users/${encodeURIComponent(api.userId())}/subscriptions`]
  ]
]

export const operators: ReadonlyArray<Case> = [
  define({
    name: "tells an operator that they are one",
    request: (api) => by(api, "GET", "/"),
    expected: { status: 200, body: { user: { operator: true } } },
    also: async (_, api) => {
      const { json } = await api.send({ method: "GET", path: "/", as: api.me })
      expect(Object.keys(json.user)).toEqual(["id", "principals"])
    }
  }),
  define<string>({
    name: "shows an operator a broadcast below a channel",
    given: locationOf,
    request: (api, location) => ({ ...by(api, "GET", ""), target: location }),
    expected: ({ channel }) => ({ status: 200, body: { data: { to: { channels: [channel] } } } })
  }),
  define<string>({
    name: "shows an operator a broadcast to users, without naming them",
    given: toUser,
    request: (api, location) => ({ ...by(api, "GET", ""), target: location }),
    expected: { status: 200, body: { data: { to: { users: 1 } } } },
    also: ({ text }, api) => expect(text).not.toContain(api.userId())
  }),
  define<string>({
    name: "lists the broadcasts to a channel to an operator",
    given: async (api) => {
      const id = idIn(await locationOf(api))
      await until(
        () => api.send(by(api, "GET", `/channels/${api.channel}/broadcasts`)),
        ({ json }) => json.data?.length === 1
      )
      return id
    },
    request: (api) => by(api, "GET", `/channels/${api.channel}/broadcasts`),
    expected: (_, id) => ({ status: 200, body: { data: [{ id }] } })
  }),
  define<string>({
    name: "lists the broadcasts of all publishers to an operator, those to users, too",
    given: async (api) => {
      const id = idIn(await toUser(api))
      await until(
        () => api.send(by(api, "GET", "/broadcasts")),
        ({ json }) => json.data?.some((each: { id: string }) => each.id === id)
      )
      return id
    },
    request: (api) => by(api, "GET", "/broadcasts"),
    expected: { status: 200 }
  }),
  define<string>({
    name: "lets an operator cancel the broadcast of somebody else",
    given: async (api) => idIn(await running(api)),
    request: (api, id) => by(api, "PATCH", `/broadcasts/${id}`, cancelled),
    expected: { status: 200, body: { data: { state: "cancelled" } } },
    also: async (_, api, id) => {
      const back = by(api, "PATCH", `/broadcasts/${id}`, { data: { state: "running" } })
      expect((await api.send(back)).json).toMatchObject({ code: 409, errno: 124 })
    }
  }),
  ...refused.map(([name, request]) =>
    define({
      name: `does not let an operator ${name}`,
      request: (api) => by(api, ...request(api)),
      expected: { status: 403, errno: 121 }
    })
  )
]
