// Contract 4.11: broadcasts that are sent again, and causes of dead pushes. No process of the suite
// delivers, so none is dead; test/integration/redrive.test.ts has those.
import type { Api, Request } from "../api.ts"
import { type Case, define } from "../table.ts"
import { finished, idIn, running } from "./given.ts"

const redrive = (location: string, as: string | null, body?: unknown): Request => ({
  method: "POST",
  path: `/broadcasts/${idIn(location)}/redrive`,
  as,
  ...(body === undefined ? {} : { body })
})
const dead = (as: string | null, query = ""): Request => ({
  method: "GET",
  path: `/dead${query}`,
  as
})

const others: ReadonlyArray<
  readonly [who: string, as: (api: Api) => string | null, status: 401 | 403, errno: number]
> = [
  ["a publisher", ({ target }) => target.publisher, 403, 121],
  ["a user", ({ me }) => me, 403, 121],
  ["nobody", () => null, 401, 104]
]

const badBodies: ReadonlyArray<readonly [name: string, body: unknown, details: string]> = [
  ["a dry run that is no boolean", { dry_run: "yes" }, "body:dry_run"],
  ["another key", { data: {} }, "body:"]
]

export const redrives: ReadonlyArray<Case> = [
  define<string>({
    name: "does not send a running broadcast again",
    given: running,
    request: ({ target }, location) => redrive(location, target.operator),
    expected: {
      status: 409,
      errno: 124,
      body: { details: { state: "running", reason: "unfinished" } }
    }
  }),
  define<string>({
    name: "does not send a broadcast again that missed nobody",
    given: finished,
    request: ({ target }, location) => redrive(location, target.operator, {}),
    expected: {
      status: 409,
      errno: 124,
      body: { details: { state: "finished", reason: "nobody" } }
    }
  }),
  define<string>({
    name: "says how many pushes would be sent again",
    given: finished,
    request: ({ target }, location) => redrive(location, target.operator, { dry_run: true }),
    expected: { status: 200, exactly: { data: { pushes: 0 } } }
  }),
  ...badBodies.map(([name, body, details]) =>
    define<string>({
      name: `sends nothing again by ${name}`,
      given: finished,
      request: ({ target }, location) => redrive(location, target.operator, body),
      expected: { status: 400, errno: 109, details: [details] }
    })
  ),
  ...["0", "999999999", "1x"].map((id) =>
    define({
      name: `cannot send the broadcast ${id} again, which it does not know`,
      request: ({ target }) => redrive(id, target.operator),
      expected: {
        status: 404,
        errno: 110,
        body: { details: { id, resource_name: "broadcast" } }
      }
    })
  ),
  ...others.flatMap(([who, as, status, errno]) => [
    define<string>({
      name: `sends no broadcast again for ${who}`,
      given: finished,
      request: (api, location) => redrive(location, as(api)),
      expected: { status, errno }
    }),
    define({
      name: `shows no causes of dead pushes to ${who}`,
      request: (api) => dead(as(api)),
      expected: { status, errno }
    })
  ]),
  define({
    name: "shows the causes of dead pushes to an operator",
    request: ({ target }) => dead(target.operator, "?since=2026-01-01T00:00:00Z&broadcast=1"),
    expected: {
      status: 200,
      exactly: { data: [] },
      headers: { "Next-Page": null, "Cache-Control": /no-store/ }
    }
  }),
  ...["?since=yesterday", "?broadcast=x", "?broadcast=1&broadcast=2", "?_token=abc.def"].map(
    (query) =>
      define({
        name: `shows no causes of dead pushes by ${query}`,
        request: ({ target }) => dead(target.operator, query),
        expected: { status: 400, errno: 107 }
      })
  )
]
