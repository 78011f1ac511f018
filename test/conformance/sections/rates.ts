// Contract 4.4: broadcasts with a rate.
import { expect } from "vitest"
import type { Api, Request } from "../api.ts"
import { type Case, define } from "../table.ts"
import { locationOf, publish as publishTo } from "./broadcasts.ts"
import { publish as publishDirect } from "./direct.ts"

type Publish = (api: Api, body: object, headers?: Record<string, string>) => Request

const ways: ReadonlyArray<readonly [name: string, publish: Publish]> = [
  ["a channel", publishTo],
  [
    "recipients",
    (api, body, headers) =>
      publishDirect(api, { ...body, to: { channels: [api.channel] } }, headers)
  ]
]

export const rates: ReadonlyArray<Case> = [
  ...ways.flatMap(([name, publish]) => [
    ...[1, 100_000].map((rate) =>
      define({
        name: `accepts a broadcast to ${name} with a rate of ${rate}`,
        request: (api) => publish(api, { data: { a: 1 }, rate }),
        expected: { status: 202 }
      })
    ),
    define({
      name: `counts whom a broadcast to ${name} with a rate would reach`,
      request: (api) => publish(api, { rate: 5, dry_run: true }),
      expected: { status: 200 }
    }),
    ...[0, -1, 1.5, 100_001, "10", null].map((rate) =>
      define({
        name: `refuses a broadcast to ${name} with a rate of ${JSON.stringify(rate)}`,
        request: (api) => publish(api, { rate }),
        expected: { status: 400, details: ["body:rate"] }
      })
    ),
    ...[{ rate: 6 }, {}].map((other) =>
      define({
        name: `refuses a key of a broadcast to ${name} with a rate for ${JSON.stringify(other)}`,
        given: (api) => api.send(publish(api, { rate: 5 }, { "Idempotency-Key": api.channel })),
        request: (api) => publish(api, other, { "Idempotency-Key": api.channel }),
        expected: { status: 400, errno: 107, details: ["header:Idempotency-Key"] }
      })
    )
  ]),
  define({
    name: "takes the same key for the same rate",
    given: (api) => locationOf(api, { rate: 5 }, { "Idempotency-Key": api.channel }),
    request: (api) => publishTo(api, { rate: 5 }, { "Idempotency-Key": api.channel }),
    expected: (api, location) => ({
      status: 202,
      headers: { Location: `${api.target.origin}${location}` }
    })
  }),
  define<string>({
    name: "shows the rate of a broadcast, which no header of a request gives",
    given: (api) => locationOf(api, { rate: 7 }, { "Bellcast-Rate": "8" }),
    request: (api, location) => ({ method: "GET", target: location, as: api.target.publisher }),
    expected: { status: 200, body: { data: expect.objectContaining({ rate: 7 }) } }
  }),
  define<string>({
    name: "lists the rate of a broadcast",
    given: (api) => locationOf(api, { rate: 7 }),
    request: (api) => ({
      method: "GET",
      path: `/channels/${api.channel}/broadcasts`,
      as: api.target.publisher
    }),
    expected: { status: 200, body: { data: [expect.objectContaining({ rate: 7 })] } }
  }),
  define<string>({
    name: "shows the rate that a broadcast has got before its start",
    given: async (api) => {
      const at = new Date(Date.now() + 3_600_000).toISOString()
      const location = await locationOf(api, { rate: 7, at })
      const target = location.replace(/\/channels\/[^/]+/, "")
      const body = { data: { rate: 8 } }
      await api.send({ method: "PATCH", target, as: api.target.publisher, body })
      return location
    },
    request: (api, location) => ({ method: "GET", target: location, as: api.target.publisher }),
    expected: { status: 200, body: { data: expect.objectContaining({ rate: 8 }) } }
  }),
  define<string>({
    name: "shows no rate of a broadcast without one",
    given: (api) => locationOf(api),
    request: (api, location) => ({ method: "GET", target: location, as: api.target.publisher }),
    expected: { status: 200 },
    also: ({ json }) => expect(json.data).not.toHaveProperty("rate")
  })
]
