// Contract 4.4: the progress of broadcasts.
import { expect } from "vitest"
import { type Case, define } from "../table.ts"
import { locationOf } from "./broadcasts.ts"

export const broadcastProgress: ReadonlyArray<Case> = [
  define<string>({
    name: "shows the progress of a broadcast, in counts that add up",
    given: (api) => locationOf(api, { data: { a: 1 } }, { TTL: "60" }),
    request: (api, target) => ({ method: "GET", target, as: api.target.publisher }),
    expected: {
      status: 200,
      headers: { ETag: /^"\d+"$/, "Last-Modified": /GMT$/, "Cache-Control": "no-cache, no-store" }
    },
    also: ({ json: { data } }, _, location) => {
      expect(data.id).toBe(location.split("/").at(-1))
      expect(data.accepted).toBe(
        data.delivered + data.waiting + data.retrying + data.expired + data.dead + data.gone
      )
      expect(data.expires_at - data.accepted_at).toBe(60_000)
      expect(data).toMatchObject({
        finished: expect.any(Boolean),
        shards: expect.any(Number),
        shards_done: expect.any(Number)
      })
    }
  }),
  define<string>({
    name: "shows no broadcast to a caller who may not publish",
    given: (api) => locationOf(api),
    request: (_, target) => ({ method: "GET", target }),
    expected: { status: 403, errno: 121 }
  }),
  define<string>({
    name: "shows no broadcast without credentials",
    given: (api) => locationOf(api),
    request: (_, target) => ({ method: "GET", target, as: null }),
    expected: { status: 401 }
  }),
  define<string>({
    name: "does not know a broadcast below another channel",
    given: (api) => locationOf(api),
    request: (api, target) => ({
      method: "GET",
      target: target.replace(api.channel, `${api.channel}x`),
      as: api.target.publisher
    }),
    expected: { status: 404, errno: 110, body: { details: { resource_name: "broadcast" } } }
  }),
  ...["0", "999999999", "-1", "1x", "99999999999999999999", "a%20b"].map((id) =>
    define({
      name: `does not know the broadcast ${id}`,
      request: (api) => ({
        method: "GET",
        path: `/channels/${api.channel}/broadcasts/${id}`,
        as: api.target.publisher
      }),
      expected: {
        status: 404,
        errno: 110,
        body: { details: { id: decodeURIComponent(id), resource_name: "broadcast" } }
      }
    })
  )
]
