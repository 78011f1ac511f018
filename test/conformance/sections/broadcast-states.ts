// Contract 4.8: the states of broadcasts, each change in each state by each right. No process of
// the suite delivers, so a broadcast to a browser stays running.
import { expect } from "vitest"
import type { Api, Request } from "../api.ts"
import { type Case, define, type Expected } from "../table.ts"
import { acceptedAt } from "./direct.ts"
import { finished, idIn, running } from "./given.ts"
import { scheduled } from "./schedules.ts"

const counts = ["delivered", "waiting", "retrying", "expired", "dead", "gone", "cancelled"]

/** `target`: where the broadcast is shown. */
const patch = (
  { target: { publisher } }: Api,
  target: string,
  body: unknown,
  as: string | null = publisher
): Request => ({
  method: "PATCH",
  target: target.replace(/\/channels\/[^/]+/, ""),
  as,
  ...(body === undefined ? {} : { body })
})

const toState = (state: string) => ({ data: { state } })

/** A broadcast that was running, and is in this state. */
const changed = (state: string) => async (api: Api) => {
  const location = await running(api)
  const { status, text } = await api.send(patch(api, location, toState(state)))
  if (status !== 200) throw new Error(`PATCH: ${status}: ${text}`)
  return location
}

type Given = (api: Api) => Promise<string>
const given: Readonly<Record<string, Given>> = {
  scheduled,
  running,
  paused: changed("paused"),
  cancelled: changed("cancelled"),
  finished
}

/** The state that a request leads to from each; null: the change is impossible. */
const changes: ReadonlyArray<readonly [from: string, wanted: string, then: string | null]> = [
  ["scheduled", "running", null],
  ["scheduled", "paused", null],
  ["scheduled", "cancelled", "cancelled"],
  ["running", "running", "running"],
  ["running", "paused", "paused"],
  ["running", "cancelled", "cancelled"],
  ["paused", "paused", "paused"],
  ["paused", "running", "running"],
  ["paused", "cancelled", "cancelled"],
  ["cancelled", "cancelled", "cancelled"],
  ["cancelled", "running", null],
  ["cancelled", "paused", null],
  ["finished", "cancelled", null],
  ["finished", "running", null],
  ["finished", "paused", null]
]

const unknown: Expected = {
  status: 404,
  errno: 110,
  body: { details: { resource_name: "broadcast" } }
}

const badBodies: ReadonlyArray<readonly [name: string, body: unknown, details: string]> = [
  ["nothing", undefined, "body:data"],
  ["no state", { data: {} }, "body:data.state"],
  ["a state that no request may ask for", toState("finished"), "body:data.state"],
  ["a state that is none", toState("stopped"), "body:data.state"],
  ["a state that is no text", { data: { state: null } }, "body:data.state"],
  ["data that is a list", { data: [] }, "body:data"],
  ["another key of data", { data: { state: "cancelled", ttl: 5 } }, "body:data"],
  ["another key", { ...toState("cancelled"), state: "cancelled" }, "body:"]
]

export const broadcastStates: ReadonlyArray<Case> = [
  ...changes.flatMap(([from, wanted, then]) => [
    define<string>({
      name:
        then === null
          ? `does not let a ${from} broadcast be ${wanted}, and says what it is`
          : `lets a ${from} broadcast be ${wanted}`,
      given: given[from]!,
      request: (api, location) => patch(api, location, toState(wanted)),
      expected:
        then === null
          ? { status: 409, errno: 124, body: { details: { state: from } } }
          : {
              status: 200,
              body: { data: { state: then } },
              headers: { ETag: /^"\d+"$/, "Last-Modified": /GMT$/, "Cache-Control": /no-store/ }
            },
      also: async (_, api, location) => {
        const { json } = await api.send({
          method: "GET",
          target: location,
          as: api.target.publisher
        })
        expect(json.data.state).toBe(then ?? from)
        const sum = counts.reduce((total, name) => total + json.data[name], 0)
        expect(json.data.accepted).toBe(sum)
      }
    }),
    define<string>({
      name: `lets an operator want a ${from} broadcast to be ${wanted}, with the same result`,
      given: given[from]!,
      request: (api, location) => patch(api, location, toState(wanted), api.target.operator),
      expected:
        then === null
          ? { status: 409, errno: 124, body: { details: { state: from } } }
          : { status: 200, body: { data: { state: then } } }
    }),
    define<string>({
      name: `knows no ${from} broadcast that a caller without rights wants to be ${wanted}`,
      given: given[from]!,
      request: (api, location) => patch(api, location, toState(wanted), api.me),
      expected: unknown
    }),
    define<string>({
      name: `lets nobody without credentials want a ${from} broadcast to be ${wanted}`,
      given: given[from]!,
      request: (api, location) => patch(api, location, toState(wanted), null),
      expected: { status: 401 }
    })
  ]),
  define<string>({
    name: "cancels a broadcast at its Location, below its channel",
    given: running,
    request: (api, target) => ({ ...patch(api, target, toState("cancelled")), target }),
    expected: { status: 200, body: { data: { state: "cancelled" } } }
  }),
  define<string>({
    name: "knows no broadcast below another channel that somebody wants to cancel",
    given: running,
    request: (api, location) => ({
      ...patch(api, location, toState("cancelled")),
      target: location.replace(/\/channels\/[^/]+/, "/channels/another")
    }),
    expected: unknown
  }),
  define<string>({
    name: "cancels a broadcast to channels and users",
    given: (api) => acceptedAt(api),
    request: (api, location) => patch(api, location, toState("cancelled")),
    expected: { status: 200, body: { data: { state: "cancelled" } } }
  }),
  define<string>({
    name: "cancels by an entry of a batch",
    given: running,
    request: (api, location) => ({
      method: "POST",
      path: "/batch",
      as: api.target.publisher,
      body: {
        requests: [
          {
            method: "PATCH",
            path: `/broadcasts/${idIn(location)}`,
            body: toState("cancelled")
          }
        ]
      }
    }),
    expected: {
      status: 200,
      body: { responses: [{ status: 200, body: { data: { state: "cancelled" } } }] }
    }
  }),
  ...badBodies.map(([name, body, details]) =>
    define<string>({
      name: `refuses a change of a broadcast with ${name}, and changes nothing`,
      given: running,
      request: (api, location) => patch(api, location, body),
      expected: { status: 400, errno: 109, details: [details] },
      also: async (_, api, location) => {
        const { publisher } = api.target
        const { json } = await api.send({ method: "GET", target: location, as: publisher })
        expect(json.data.state).toBe("running")
      }
    })
  ),
  define<string>({
    name: "refuses a change of a broadcast of another type than JSON",
    given: running,
    request: (api, location) => ({
      ...patch(api, location, JSON.stringify(toState("cancelled"))),
      headers: { "content-type": "application/merge-patch+json" }
    }),
    expected: { status: 415, errno: 107 }
  }),
  ...["0", "999999999", "1x"].map((id) =>
    define({
      name: `cannot change the broadcast ${id}, which it does not know`,
      request: (api) => patch(api, `/v1/broadcasts/${id}`, toState("cancelled")),
      expected: { ...unknown, body: { details: { id, resource_name: "broadcast" } } }
    })
  )
]
