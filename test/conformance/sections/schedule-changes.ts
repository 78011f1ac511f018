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

export const scheduleChanges: ReadonlyArray<Case> = [
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
