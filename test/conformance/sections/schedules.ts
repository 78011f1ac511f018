// Contract 4.14: broadcasts that start later than they are accepted.
import { expect } from "vitest"
import { until } from "../../support/client.ts"
import { inHours } from "../../support/times.ts"
import type { Api, Request } from "../api.ts"
import { type Case, define } from "../table.ts"
import { accepted, locationOf, publish } from "./broadcasts.ts"
import { idIn, running } from "./given.ts"

export const at = inHours(20 * 24)
export const sooner = at.replace("Z", "+00:30")

export const shownAt = (
  api: Api,
  target: string,
  as: string | null = api.target.publisher
): Request => ({
  method: "GET",
  target,
  as
})

export const patch = (api: Api, location: string, data: unknown, as?: string | null): Request => ({
  method: "PATCH",
  path: `/broadcasts/${idIn(location)}`,
  as: as === undefined ? api.target.publisher : as,
  body: { data }
})

export const scheduled = (api: Api) => locationOf(api, { data: { n: 1 }, at })

export const badTimes: ReadonlyArray<readonly [name: string, at: unknown]> = [
  ["no time", "tomorrow"],
  ["a time without its offset", "2026-12-24T18:00:00"],
  ["a day that no month has", "2027-02-30T18:00:00Z"],
  ["a number", 1_800_000_000],
  ["null", null],
  ["a time of more than 30 days ahead", inHours(31 * 24)],
  ["a time more than an hour ago", inHours(-2)]
]

const badDelays: ReadonlyArray<readonly [name: string, delay: unknown]> = [
  ["no time", 0],
  ["more than an hour", 3_601],
  ["one and a half seconds", 1.5],
  ["a text", "10"],
  ["null", null]
]

/** Broadcasts whose start counts from when they were stored. */
const delays: ReadonlyArray<Case> = [
  ...(["/channels", "/broadcasts"] as const).map((path) =>
    define({
      name: `starts a broadcast of ${path} some seconds after it was stored`,
      request: (api) => {
        const body = { data: { n: 1 }, delay_seconds: 3_600 }
        return path === "/channels"
          ? publish(api, body)
          : {
              ...{ method: "POST", path, as: api.target.publisher },
              body: { ...body, to: { channels: [api.channel] } }
            }
      },
      expected: { status: 202, exactly: accepted.body },
      also: async ({ json }, api) => {
        const { json: shown } = await api.send(shownAt(api, new URL(json.url).pathname))
        const startsAt = shown.data.accepted_at + 3_600_000
        expect(shown.data).toMatchObject({
          ...{ state: "scheduled", at: new Date(startsAt).toISOString() },
          expires_at: startsAt + 86_400_000
        })
      }
    })
  ),
  ...badDelays.map(([name, delay_seconds]) =>
    define({
      name: `refuses a delay of ${name}`,
      request: (api) => publish(api, { delay_seconds }),
      expected: { status: 400, errno: 109, details: ["body:delay_seconds"] }
    })
  ),
  define({
    name: "refuses a delay beside a time",
    request: (api) => publish(api, { at, delay_seconds: 10 }),
    expected: { status: 400, errno: 109, details: ["body:delay_seconds"] }
  }),
  define<{ readonly id: string; readonly startsAt: string }>({
    name: "does not move the start of a broadcast whose request is repeated",
    given: async (api) => {
      const body = { delay_seconds: 3_600 }
      const location = await locationOf(api, body, { "idempotency-key": "delayed" })
      const { json } = await api.send(shownAt(api, location))
      return { id: idIn(location), startsAt: json.data.at }
    },
    request: (api) => publish(api, { delay_seconds: 3_600 }, { "idempotency-key": "delayed" }),
    expected: (_, { id }) => ({ status: 202, body: { id } }),
    also: async ({ json }, api, { startsAt }) => {
      const { json: shown } = await api.send(shownAt(api, new URL(json.url).pathname))
      expect(shown.data.at).toBe(startsAt)
    }
  }),
  define<string>({
    name: "refuses the same key for a broadcast with another delay",
    given: (api) => locationOf(api, { delay_seconds: 3_600 }, { "idempotency-key": "delayed" }),
    request: (api) => publish(api, { delay_seconds: 3_599 }, { "idempotency-key": "delayed" }),
    expected: { status: 400, errno: 107, details: ["header:Idempotency-Key"] }
  })
]

export const schedules: ReadonlyArray<Case> = [
  ...delays,
  define({
    name: "accepts a broadcast that starts later",
    request: (api) => publish(api, { data: { n: 1 }, at }),
    expected: { status: 202, exactly: accepted.body },
    also: async ({ json }, api) => {
      const target = new URL(json.url).pathname
      const { json: shown } = await api.send(shownAt(api, target))
      expect(shown.data).toMatchObject({ state: "scheduled", at, accepted: 0, finished: false })
      expect(shown.data.expires_at).toBe(Date.parse(at) + 86_400_000)
      expect(shown.data).not.toHaveProperty("started_at")
    }
  }),
  define({
    name: "starts a broadcast at once whose time has just passed",
    request: (api) => publish(api, { at: inHours(-0.5) }),
    expected: { status: 202 },
    also: async ({ json }, api) => {
      const { json: shown } = await api.send(shownAt(api, new URL(json.url).pathname))
      expect(shown.data.state).not.toBe("scheduled")
      expect(shown.data).not.toHaveProperty("at")
    }
  }),
  define({
    name: "makes a dry run of a broadcast that starts later",
    request: (api) => publish(api, { at, dry_run: true }),
    expected: { status: 200, body: { data: { people: 0 } } }
  }),
  ...badTimes.flatMap(([name, time]) => [
    define({
      name: `refuses a broadcast that starts at ${name}`,
      request: (api) => publish(api, { at: time }),
      expected: { status: 400, errno: 109, details: ["body:at"] }
    }),
    define({
      name: `refuses a broadcast to channels that starts at ${name}`,
      request: (api) => ({
        method: "POST",
        path: "/broadcasts",
        as: api.target.publisher,
        body: { at: time, to: { channels: [api.channel] } }
      }),
      expected: { status: 400, errno: 109, details: ["body:at"] }
    })
  ]),
  define<string>({
    name: "takes the same key for the same broadcast, also after its start was changed",
    given: async (api) => {
      const location = await locationOf(api, { at }, { "idempotency-key": "later" })
      await api.send(patch(api, location, { at: sooner, data: { n: 2 } }))
      return idIn(location)
    },
    request: (api) => publish(api, { at }, { "idempotency-key": "later" }),
    expected: (_, id) => ({ status: 202, body: { id } })
  }),
  define<string>({
    name: "refuses the same key for a broadcast that starts at another time",
    given: (api) => locationOf(api, { at }, { "idempotency-key": "later" }),
    request: (api) => publish(api, { at: sooner }, { "idempotency-key": "later" }),
    expected: { status: 400, errno: 107, details: ["header:Idempotency-Key"] }
  }),
  define<string>({
    name: "lists the broadcasts that wait for their start",
    given: async (api) => {
      const id = idIn(await scheduled(api))
      await running(api)
      const path = `/channels/${api.channel}/broadcasts`
      await until(
        () => api.send({ method: "GET", path, as: api.target.publisher }),
        ({ json }) => json.data?.length === 2
      )
      return id
    },
    request: (api) => ({
      method: "GET",
      path: `/channels/${api.channel}/broadcasts?state=scheduled`,
      as: api.target.publisher
    }),
    expected: (_, id) => ({ status: 200, body: { data: [{ id, at }] } }),
    also: ({ json }) => expect(json.data).toHaveLength(1)
  })
]
