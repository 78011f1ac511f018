// Contract 4.14: what changes a broadcast until it starts, in each state and by each right.
import { expect } from "vitest"
import type { Api } from "../api.ts"
import { type Case, define, type Expected } from "../table.ts"
import { acceptedAt } from "./direct.ts"
import { finished, running } from "./given.ts"
import { at, badTimes, patch, scheduled, shownAt, sooner } from "./schedules.ts"

const cancelled = async (api: Api) => {
  const location = await scheduled(api)
  await api.send(patch(api, location, { state: "cancelled" }))
  return location
}

const paused = async (api: Api) => {
  const location = await running(api)
  await api.send(patch(api, location, { state: "paused" }))
  return location
}

const badChanges: ReadonlyArray<readonly [name: string, data: unknown, details: string]> = [
  ...badTimes.map(([name, time]) => [name, { at: time }, "body:data.at"] as const),
  ["a time and a state", { at, state: "cancelled" }, "body:data.state"],
  ["a dry run", { at, dry_run: true }, "body:data"],
  ["a delay", { delay_seconds: 10 }, "body:data"],
  ["data that is null", { data: null }, "body:data.data"],
  ["a variant of no language", { data_by_locale: { "d e": {} } }, "body:data.data_by_locale.d e"],
  [
    "a notification without its title",
    { data: { web_push: 8030, notification: { navigate: "https://example.org/" } } },
    "body:data.data.notification.title"
  ]
]

const refused = (state: string): Expected => ({
  status: 409,
  errno: 124,
  body: { details: { state } }
})

const started: ReadonlyArray<readonly [state: string, given: (api: Api) => Promise<string>]> = [
  ["running", running],
  ["paused", paused],
  ["finished", finished],
  ["cancelled", cancelled]
]

const changesOfData: ReadonlyArray<readonly [name: string, data: object]> = [
  ["its data", { data: { n: 2 } }],
  ["its variants", { data_by_locale: { de: {} } }],
  ["all of it", { at: sooner, rate: 9, data: {}, data_by_locale: {} }]
]
const otherChanges: ReadonlyArray<readonly [name: string, data: object]> = [
  ["its start", { at: sooner }],
  ["its rate", { rate: 9 }]
]
const changes = [...changesOfData, ...otherChanges]

interface Shown {
  readonly data: { readonly last_modified: number; readonly [member: string]: unknown }
}

/** A scheduled broadcast whose rate was changed, as the response showed it. */
const changed = async (api: Api) => {
  const location = await scheduled(api)
  const { json } = await api.send(patch(api, location, { rate: 5 }))
  return { location, shown: json as Shown }
}
type Changed = Awaited<ReturnType<typeof changed>>

const tag = ({ shown }: Changed, plus = 0) => `"${shown.data.last_modified + plus}"`

const preconditions: ReadonlyArray<
  readonly [name: string, headers: (given: Changed) => Readonly<Record<string, string>>]
> = [
  ["If-Match of an older state", (given) => ({ "if-match": tag(given, -1) })],
  ["If-None-Match of its state", (given) => ({ "if-none-match": tag(given) })]
]

const underConditions: ReadonlyArray<Case> = [
  ...preconditions.flatMap(([name, headers]) =>
    [{ at: sooner }, { data: { n: 2 } }, { state: "cancelled" }].map((data) =>
      define<Changed>({
        name: `does not change ${Object.keys(data)} of a broadcast with ${name}`,
        given: changed,
        request: (api, given) => ({
          ...patch(api, given.location, data),
          headers: headers(given)
        }),
        expected: (_, given) => ({
          status: 412,
          errno: 114,
          error: "modified-meanwhile",
          headers: { ETag: tag(given) },
          body: { details: { existing: given.shown.data } }
        }),
        also: async (_, api, { location, shown }) => {
          expect((await api.send(shownAt(api, location))).json).toEqual(shown)
        }
      })
    )
  ),
  define<Changed>({
    name: "changes a broadcast with If-Match of its state, and then not once more",
    given: changed,
    request: (api, given) => ({
      ...patch(api, given.location, { rate: 6 }),
      headers: { "if-match": tag(given) }
    }),
    expected: { status: 200, body: { data: { rate: 6 } } },
    also: async (_, api, given) => {
      const request = patch(api, given.location, { rate: 7 })
      const again = await api.send({ ...request, headers: { "if-match": tag(given) } })
      expect(again.status).toBe(412)
    }
  }),
  define<Changed>({
    name: "takes one of several changes of the same state at once",
    given: changed,
    request: (api, given) => ({
      ...patch(api, given.location, { rate: 6 }),
      headers: { "if-match": "*" }
    }),
    expected: { status: 200 },
    also: async ({ headers }, api, { location }) => {
      const statuses = await Promise.all(
        [11, 12, 13, 14].map(async (rate) => {
          const request = patch(api, location, { rate })
          const ifMatch = { "if-match": headers["etag"]! }
          return (await api.send({ ...request, headers: ifMatch })).status
        })
      )
      expect(statuses.toSorted()).toEqual([200, 412, 412, 412])
    }
  }),
  define<string>({
    name: "says that a broadcast changed, before it says that it has ended",
    given: cancelled,
    request: (api, location) => ({
      ...patch(api, location, { rate: 6 }),
      headers: { "if-match": '"1"' }
    }),
    expected: { status: 412, error: "modified-meanwhile" }
  }),
  define<string>({
    name: "says that a caller may not change what it says, before it says that it changed",
    given: scheduled,
    request: (api, location) => ({
      ...patch(api, location, { data: { n: 2 } }, api.target.operator),
      headers: { "if-match": '"1"' }
    }),
    expected: { status: 403, errno: 121 }
  }),
  define<string>({
    name: "refuses a change of a broadcast with an If-Match that is no tag",
    given: scheduled,
    request: (api, location) => ({
      ...patch(api, location, { rate: 6 }),
      headers: { "if-match": "1" }
    }),
    expected: { status: 400, errno: 107, details: ["header:If-Match"] }
  })
]

export const scheduleChanges: ReadonlyArray<Case> = [
  ...underConditions,
  define<string>({
    name: "lets a scheduled broadcast be cancelled, with counts of 0",
    given: scheduled,
    request: (api, location) => patch(api, location, { state: "cancelled" }),
    expected: { status: 200, body: { data: { state: "cancelled", accepted: 0 } } }
  }),
  ...changesOfData.flatMap(([name, data]) => [
    define<string>({
      name: `does not let an operator change ${name}, who does not publish`,
      given: scheduled,
      request: (api, location) => patch(api, location, data, api.target.operator),
      expected: { status: 403, errno: 121 }
    }),
    ...started.map(([state, given]) =>
      define<string>({
        name: `does not let an operator change ${name} of a ${state} broadcast`,
        given,
        request: (api, location) => patch(api, location, data, api.target.operator),
        expected: { status: 403, errno: 121 }
      })
    )
  ]),
  ...otherChanges.flatMap(([name, data]) => [
    define<string>({
      name: `lets an operator change ${name}`,
      given: scheduled,
      request: (api, location) => patch(api, location, data, api.target.operator),
      expected: { status: 200, body: { data: { state: "scheduled", ...data } } }
    }),
    ...started.map(([state, given]) =>
      define<string>({
        name: `does not let an operator change ${name} when a broadcast is ${state}`,
        given,
        request: (api, location) => patch(api, location, data, api.target.operator),
        expected: refused(state)
      })
    )
  ]),
  ...changes.flatMap(([name, data]) => [
    define<string>({
      name: `changes ${name} before a broadcast starts`,
      given: scheduled,
      request: (api, location) => patch(api, location, data),
      expected: {
        status: 200,
        body: { data: { state: "scheduled", at: "at" in data ? sooner : at } },
        headers: { ETag: /^"\d+"$/, "Last-Modified": /GMT$/, "Cache-Control": /no-store/ }
      }
    }),
    define<string>({
      name: `changes ${name} before a broadcast to a user starts`,
      given: (api) => acceptedAt(api, { at, to: { users: [api.userId()] } }),
      request: (api, location) => patch(api, location, data),
      expected: { status: 200, body: { data: { state: "scheduled" } } }
    }),
    define<string>({
      name: `knows no broadcast of which a caller without rights changes ${name}`,
      given: scheduled,
      request: (api, location) => patch(api, location, data, api.me),
      expected: { status: 404, errno: 110 }
    }),
    define<string>({
      name: `lets nobody without credentials change ${name}`,
      given: scheduled,
      request: (api, location) => patch(api, location, data, null),
      expected: { status: 401 }
    }),
    ...started.flatMap(([state, given]) => [
      define<string>({
        name: `does not change ${name} when a broadcast is ${state}`,
        given,
        request: (api, location) => patch(api, location, data),
        expected: refused(state)
      }),
      define<string>({
        name: `knows no ${state} broadcast of which a caller without rights changes ${name}`,
        given,
        request: (api, location) => patch(api, location, data, api.me),
        expected: { status: 404, errno: 110 }
      }),
      define<string>({
        name: `lets nobody without credentials change ${name} of a ${state} broadcast`,
        given,
        request: (api, location) => patch(api, location, data, null),
        expected: { status: 401 }
      })
    ])
  ]),
  ...badChanges.map(([name, data, details]) =>
    define<string>({
      name: `refuses a change of a scheduled broadcast to ${name}`,
      given: scheduled,
      request: (api, location) => patch(api, location, data),
      expected: { status: 400, errno: 109, details: [details] },
      also: async (_, api, location) => {
        const { json } = await api.send(shownAt(api, location))
        expect(json.data).toMatchObject({ state: "scheduled", at })
      }
    })
  ),
  define<string>({
    name: "refuses a change to data that fits into no push",
    given: scheduled,
    request: (api, location) => patch(api, location, { data: { text: "x".repeat(3_990) } }),
    expected: { status: 413, error: "payload-too-large" }
  }),
  define<string>({
    name: "refuses a change to variants that a POST of the channel would not take",
    given: scheduled,
    request: (api, location) => {
      const variants = ["da", "de", "es", "fr", "it"].map((locale) => [
        locale,
        { text: "x".repeat(3_900) }
      ])
      return patch(api, location, { data_by_locale: Object.fromEntries(variants) })
    },
    expected: { status: 413, error: "body-too-large" }
  })
]
