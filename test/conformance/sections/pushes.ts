// Contract 4.10: the pushes of a broadcast, and their timeline. No process of the suite delivers,
// so no push has an outcome; test/integration/pushes.test.ts has those.
import { expect } from "vitest"
import type { Api, Request } from "../api.ts"
import { type Case, define } from "../table.ts"
import { acceptedAt } from "./direct.ts"
import { idIn, running } from "./given.ts"

const list = (location: string, query: string, as: string | null): Request => ({
  method: "GET",
  path: `/broadcasts/${idIn(location)}/pushes${query}`,
  as
})

const timeline = (location: string, as: string | null): Request => ({
  method: "GET",
  path: `/broadcasts/${idIn(location)}/timeline`,
  as
})

const ofMe = (api: Api) => `?user=${encodeURIComponent(api.userId())}`
const none = { status: 200, exactly: { data: [] }, headers: { "Next-Page": null } } as const

const badQueries: ReadonlyArray<readonly [name: string, query: string]> = [
  ["an unknown outcome", "?outcome=sent"],
  ["an outcome that none has", "?outcome=waiting"],
  ["an unknown push service", "?push_service=fcm.googleapis.com"],
  ["two outcomes", "?outcome=dead&outcome=gone"],
  ["a user of no policy", "?user=nobody:1"],
  ["a limit that is no number", "?_limit=many"],
  ["a token that nobody signed", "?_token=abc.def"]
]

export const pushes: ReadonlyArray<Case> = [
  define<string>({
    name: "lists no push that has no outcome",
    given: running,
    request: ({ target }, location) => list(location, "", target.publisher),
    expected: none
  }),
  define<string>({
    name: "takes an outcome, a push service and a limit for the list of pushes",
    given: running,
    request: ({ target }, location) =>
      list(location, "?outcome=dead&push_service=apple&_limit=3&other=1", target.publisher),
    expected: none
  }),
  define<string>({
    name: "lists the pushes to a user to an operator",
    given: (api) => acceptedAt(api),
    request: (api, location) => list(location, ofMe(api), api.target.operator),
    expected: none
  }),
  define<string>({
    name: "lists no pushes to a user to others, who may see the broadcast",
    given: running,
    request: (api, location) => list(location, ofMe(api), api.target.publisher),
    expected: { status: 403, errno: 121 }
  }),
  define<string>({
    name: "knows no pushes for a caller who may not see the broadcast",
    given: running,
    request: (api, location) => list(location, "", api.me),
    expected: { status: 404, errno: 110 }
  }),
  define<string>({
    name: "lists no pushes to nobody",
    given: running,
    request: (_, location) => list(location, "", null),
    expected: { status: 401, errno: 104 }
  }),
  define<string>({
    name: "lists pushes as CSV, with a line of names, where Accept prefers it",
    given: running,
    request: ({ target }, location) => ({
      ...list(location, "", target.publisher),
      headers: { Accept: "text/csv, */*;q=0.1" }
    }),
    expected: {
      status: 200,
      headers: {
        "Content-Type": "text/csv; header=present; charset=UTF-8",
        Vary: /\bAccept\b/,
        "Next-Page": null
      }
    },
    also: ({ text }) =>
      expect(text).toBe(
        "subscription,push_service,outcome,reason,status,attempts,millis,at,next_at,locale\r\n"
      )
  }),
  define<string>({
    name: "lists pushes as JSON where Accept names CSV, too",
    given: running,
    request: ({ target }, location) => ({
      ...list(location, "", target.publisher),
      headers: { Accept: "text/csv, application/json" }
    }),
    expected: none
  }),
  define<string>({
    name: "shows a timeline without points where no push has an outcome",
    given: running,
    request: ({ target }, location) => timeline(location, target.publisher),
    expected: {
      status: 200,
      exactly: { data: { minutes: 1, points: [] } },
      headers: { ETag: /^"\d+"$/, "Last-Modified": /GMT$/, "Cache-Control": "no-cache, no-store" }
    }
  }),
  define<string>({
    name: "knows no timeline for a caller who may not see the broadcast",
    given: running,
    request: (api, location) => timeline(location, api.me),
    expected: { status: 404, errno: 110 }
  }),
  define<string>({
    name: "shows no timeline to nobody",
    given: running,
    request: (_, location) => timeline(location, null),
    expected: { status: 401, errno: 104 }
  }),
  ...["0", "999999999", "1x"].map((id) =>
    define({
      name: `knows no pushes of the broadcast ${id}`,
      request: ({ target }) => list(id, "", target.operator),
      expected: {
        status: 404,
        errno: 110,
        body: { details: { id, resource_name: "broadcast" } }
      }
    })
  ),
  ...badQueries.map(([name, query]) =>
    define<string>({
      name: `lists no pushes by ${name}`,
      given: running,
      request: ({ target }, location) => list(location, query, target.operator),
      expected: { status: 400, errno: 107 }
    })
  )
]
