// Contract 4.4: the progress of broadcasts.
import { expect } from "vitest"
import type { Api } from "../api.ts"
import { type Case, define } from "../table.ts"
import { locationOf } from "./broadcasts.ts"

/** Shows a broadcast with all its counts, which add up, to the publisher. */
export const shownProgress = (
  name: string,
  given: (api: Api) => Promise<string>,
  lifetimeMillis: number
): Case =>
  define<string>({
    name,
    given,
    request: (api, target) => ({ method: "GET", target, as: api.target.publisher }),
    expected: {
      status: 200,
      headers: { ETag: /^"\d+"$/, "Last-Modified": /GMT$/, "Cache-Control": "no-cache, no-store" }
    },
    also: ({ json: { data } }, _, location) => {
      expect(data.id).toBe(location.split("/").at(-1))
      expect(data.accepted).toBe(
        data.delivered +
          data.waiting +
          data.retrying +
          data.expired +
          data.dead +
          data.gone +
          data.cancelled
      )
      expect(data.expires_at - data.accepted_at).toBe(lifetimeMillis)
      expect(data).toMatchObject({
        state: expect.stringMatching(/^(running|finished)$/),
        finished: expect.any(Boolean),
        shards: expect.any(Number),
        shards_done: expect.any(Number),
        retries: [],
        reasons: expect.any(Object),
        push_services: expect.any(Object)
      })
      // The broadcast may not be planned yet.
      if (data.shards > 0) expect(data.done_share).toBe(data.finished ? 1 : 0)
      // The audience is nobody, so there are no outcomes and no answers.
      expect([data.reasons, data.push_services]).toEqual([{}, {}])
      for (const absent of [
        "locales",
        "p50_millis",
        "p99_millis",
        "first_delivered_at",
        "last_delivered_at"
      ])
        expect(data).not.toHaveProperty(absent)
    }
  })

/** Shows a broadcast to nobody without credentials, and below no channel but its own. */
export const hiddenProgress = (
  [anonymous, elsewhere]: readonly [anonymous: string, elsewhere: string],
  given: (api: Api) => Promise<string>,
  targetElsewhere: (target: string, api: Api) => string
): ReadonlyArray<Case> => [
  define<string>({
    name: anonymous,
    given,
    request: (_, target) => ({ method: "GET", target, as: null }),
    expected: { status: 401 }
  }),
  define<string>({
    name: elsewhere,
    given,
    request: (api, target) => ({
      method: "GET",
      target: targetElsewhere(target, api),
      as: api.target.publisher
    }),
    expected: { status: 404, errno: 110, body: { details: { resource_name: "broadcast" } } }
  })
]

export const broadcastProgress: ReadonlyArray<Case> = [
  shownProgress(
    "shows the progress of a broadcast, in counts that add up",
    (api) => locationOf(api, { data: { a: 1 } }, { TTL: "60" }),
    60_000
  ),
  define<string>({
    name: "shows no broadcast to a caller who may not publish",
    given: (api) => locationOf(api),
    request: (_, target) => ({ method: "GET", target }),
    expected: { status: 403, errno: 121 }
  }),
  ...hiddenProgress(
    ["shows no broadcast without credentials", "does not know a broadcast below another channel"],
    (api) => locationOf(api),
    (target, { channel }) => target.replace(channel, `${channel}x`)
  ),
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
