// Contract 4.13: streams of events. No process of the suite delivers, so a stream of a running
// broadcast has one event until somebody changes its state; test/integration/events.test.ts has
// the others.
import { expect } from "vitest"
import { until } from "../../support/client.ts"
import { follow } from "../../support/events.ts"
import type { Api, Request } from "../api.ts"
import { type Case, define } from "../table.ts"
import { batch } from "./batch.ts"
import { acceptedAt } from "./direct.ts"
import { finished, idIn, running } from "./given.ts"

const stream = (location: string, as: string | null, headers = {}): Request => ({
  method: "GET",
  target: `${location}/events`,
  as,
  headers
})

const byId = (location: string) => `/v1/broadcasts/${idIn(location)}`

const places = { "by its id": byId, "below its channel": (location: string) => location }

const headers = {
  "Content-Type": "text/event-stream; charset=UTF-8",
  "Cache-Control": "no-cache, no-store",
  "X-Accel-Buffering": "no"
}

const eventIn = (text: string) => {
  const [, id, data] = /^id: (\w+)\ndata: (\{.*\})\n\n$/.exec(text) ?? []
  return { id: id!, data: JSON.parse(data!) }
}

const shown = async (api: Api, location: string) =>
  (await api.send({ method: "GET", target: location, as: api.target.publisher })).json.data

const unknown = { status: 404, errno: 110, body: { details: { resource_name: "broadcast" } } }

export const events: ReadonlyArray<Case> = [
  ...Object.entries(places).map(([name, place]) =>
    define<string>({
      name: `streams the one event of a finished broadcast, without what it says, ${name}`,
      given: (api) => finished(api, { data: { title: "Fire" }, name: "Fire, corrected" }),
      request: ({ target }, location) => stream(place(location), target.publisher),
      expected: { status: 200, headers },
      also: async ({ text }, api, location) => {
        const { data, name, title, ...rest } = await shown(api, location)
        expect([data, name, title]).toEqual([{ title: "Fire" }, "Fire, corrected", "Fire"])
        expect(eventIn(text).data).toEqual(rest)
      }
    })
  ),
  define<{ location: string; id: string }>({
    name: "ends the reconnecting of a browser that has the last event",
    given: async (api) => {
      const location = await finished(api)
      const { text } = await api.send(stream(location, api.target.publisher))
      return { location, id: eventIn(text).id }
    },
    request: ({ target }, { id, location }) =>
      stream(location, target.publisher, { "last-event-id": id }),
    expected: { status: 204, headers: { "Content-Type": null } }
  }),
  define<string>({
    name: "streams the last event to a browser that has another one",
    given: finished,
    request: ({ target }, location) =>
      stream(location, target.publisher, { "last-event-id": '\u00ff"another' }),
    expected: { status: 200, headers },
    also: ({ text }) => expect(eventIn(text).data.finished).toBe(true)
  }),
  define<string>({
    name: "responds to HEAD of a stream with its head alone",
    given: running,
    request: ({ target }, location) => ({ ...stream(location, target.publisher), method: "HEAD" }),
    expected: { status: 200, headers }
  }),
  define<string>({
    name: "streams the changes of a running broadcast, and finds its caller again meanwhile",
    given: running,
    request: ({ target }, location) => ({ ...stream(location, target.publisher), method: "HEAD" }),
    expected: { status: 200 },
    also: async (_, api, location) => {
      const { origin, publisher } = api.target
      const target = byId(location)
      const open = await follow(`${origin}${target}/events`, await api.headersOf(publisher))
      const began = performance.now()
      await until(
        async () => open.events,
        (found) => found.length > 0 && performance.now() - began > 2_500
      )
      expect(open.endedAt).toBeUndefined()
      await api.send({
        method: "PATCH",
        target,
        as: publisher,
        body: { data: { state: "paused" } }
      })
      await until(
        async () => open.events,
        (found) => found.at(-1)?.data.state === "paused"
      )
      open.close()
      expect(open.events[0]?.data.state).toBe("running")
    }
  }),
  define<string>({
    name: "streams to an operator",
    given: finished,
    request: ({ target }, location) => stream(byId(location), target.operator),
    expected: { status: 200, headers }
  }),
  define<string>({
    name: "streams nothing to callers who may not see the broadcast",
    given: (api) => acceptedAt(api),
    request: (api, location) => stream(location, api.me),
    expected: unknown
  }),
  define<string>({
    name: "streams nothing below a channel to those who may not publish there",
    given: running,
    request: (api, location) => stream(location, api.me),
    expected: { status: 403, errno: 121 }
  }),
  define<string>({
    name: "streams nothing to nobody",
    given: running,
    request: (_, location) => stream(location, null),
    expected: { status: 401, errno: 104 }
  }),
  define<string>({
    name: "knows no stream below another channel",
    given: running,
    request: ({ target }, location) =>
      stream(location.replace(/\/channels\/[^/]+/, "/channels/another"), target.publisher),
    expected: unknown
  }),
  ...["0", "999999999", "1x"].map((id) =>
    define({
      name: `knows no stream of the broadcast ${id}`,
      request: ({ target }) => stream(`/v1/broadcasts/${id}`, target.operator),
      expected: { ...unknown, body: { details: { id, resource_name: "broadcast" } } }
    })
  ),
  define<string>({
    name: "has no stream in a batch",
    given: running,
    request: ({ target }, location) => ({
      ...batch([{ path: `${byId(location)}/events` }]),
      as: target.publisher
    }),
    expected: { status: 200, body: { responses: [{ status: 400, body: { errno: 107 } }] } }
  }),
  define<string>({
    name: "lets pages of other origins read a stream",
    given: finished,
    request: ({ target }, location) =>
      stream(byId(location), target.publisher, { origin: "https://shop.example" }),
    expected: { status: 200, headers: { ...headers, "Access-Control-Allow-Origin": "*" } }
  })
]
