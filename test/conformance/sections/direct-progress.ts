// Contract 4.6: dry runs, and the progress of broadcasts by their id alone.
import { expect } from "vitest"
import { type Case, define } from "../table.ts"
import { hiddenProgress, shownProgress } from "./broadcast-progress.ts"
import { locationOf, publish as publishOnChannel } from "./broadcasts.ts"
import { acceptedAt, publish } from "./direct.ts"
import { idIn } from "./given.ts"

export const directProgress: ReadonlyArray<Case> = [
  define({
    name: "says in a dry run how many people and browsers a broadcast would reach",
    given: async (api) => {
      await api.registered()
      await api.stored("one")
      await api.stored("two")
      await api.registered(api.channel, `${api.me}2`)
    },
    request: (api) => {
      const users = [api.userId(), api.userId(`${api.me}3`)]
      return publish(api, { data: {}, to: { channels: [api.channel], users }, dry_run: true })
    },
    expected: {
      status: 200,
      exactly: {
        data: { people: 1, browsers: 2, estimated: false, without_subscription: 1 },
        warnings: []
      },
      headers: { Location: null, "Cache-Control": "no-cache, no-store" }
    },
    also: async (_, api) => {
      const sent = publishOnChannel(api, { data: {}, dry_run: true })
      const { json, status } = await api.send(sent)
      const data = { people: 1, browsers: 2, estimated: false }
      expect([status, json]).toEqual([200, { data, warnings: [] }])
    }
  }),
  define({
    name: "warns in a dry run of what the 202 warns of: a misspelt channel, a long payload",
    request: (api) => {
      const data = { filler: "x".repeat(3_000) }
      return publish(api, { data, to: { channels: [api.channel] }, dry_run: true })
    },
    expected: {
      status: 200,
      body: {
        data: { people: 0, browsers: 0, unjoined_channels: [expect.stringMatching(/^c-/)] },
        warnings: [expect.stringMatching(/Android/), expect.stringMatching(/^Nobody is registered/)]
      }
    }
  }),
  define({
    name: "refuses in a dry run a payload that does not fit into a push",
    request: (api) =>
      publish(api, {
        data: { filler: "x".repeat(4_000) },
        to: { channels: [api.channel] },
        dry_run: true
      }),
    expected: { status: 413, error: "payload-too-large" },
    also: async (_, api) => {
      const body = { data: { filler: "x".repeat(4_000) }, dry_run: true }
      expect((await api.send(publishOnChannel(api, body))).status).toBe(413)
    }
  }),
  shownProgress(
    "shows the progress of a broadcast to recipients",
    (api) => acceptedAt(api),
    86_400_000
  ),
  define<string>({
    name: "shows the progress of a broadcast to a channel by its id alone",
    given: (api) => locationOf(api),
    request: (api, location) => ({
      method: "GET",
      path: `/broadcasts/${idIn(location)}`,
      as: api.target.publisher
    }),
    expected: { status: 200 },
    also: ({ json }, _, location) => expect(json.data.id).toBe(idIn(location))
  }),
  define<string>({
    name: "does not show a broadcast to who might not have sent it",
    given: (api) => acceptedAt(api),
    request: (_, target) => ({ method: "GET", target }),
    expected: { status: 404, errno: 110, body: { details: { resource_name: "broadcast" } } }
  }),
  define<string>({
    name: "does not show a broadcast to who might not have sent it, although nobody is left of it",
    given: (api) => {
      const named = [api.userId()]
      return acceptedAt(api, { to: { users: named, except_users: named } })
    },
    request: (_, target) => ({ method: "GET", target }),
    expected: { status: 404, errno: 110 }
  }),
  ...hiddenProgress(
    [
      "does not show a broadcast to recipients to nobody",
      "does not know a broadcast to recipients below a channel"
    ],
    (api) => acceptedAt(api),
    (target, { channel }) => target.replace("/broadcasts", `/channels/${channel}/broadcasts`)
  ),
  ...["0", "999999999", "-1", "1x", "99999999999999999999"].map((id) =>
    define({
      name: `does not know the broadcast ${id} by its id alone`,
      request: (api) => ({ method: "GET", path: `/broadcasts/${id}`, as: api.target.publisher }),
      expected: { status: 404, errno: 110, body: { details: { id, resource_name: "broadcast" } } }
    })
  )
]
