// Contract 1.8: requests that a page of another site sends through a user's browser.
import { expect } from "vitest"
import type { Api, Request } from "../api.ts"
import type { Login } from "../logins/login.ts"
import { type Case, define } from "../table.ts"

/** Browsers may add the credentials to requests of any page. */
const isOfBrowsers = ({ isOfScripts }: Login) => !isOfScripts

const registration = (api: Api, method = "PUT") => ({
  method,
  path: `/channels/${api.channel}/registration`
})

/** Whether a user is registered to the channel of the case. */
const isRegistered = async (api: Api): Promise<boolean> =>
  (await api.send({ method: "GET", path: `/channels/${api.channel}` })).status === 200

const strangers: ReadonlyArray<readonly [name: string, headers: Record<string, string>]> = [
  ["of another site", { "sec-fetch-site": "cross-site" }],
  ["of a sibling subdomain", { "sec-fetch-site": "same-site" }],
  ["of a kind of site that is unknown", { "sec-fetch-site": "tomorrow" }],
  ["that names two sites", { "sec-fetch-site": "same-origin, cross-site" }],
  ["of another origin, in an old browser", { origin: "https://page.example" }],
  ["of no origin, in an old browser", { origin: "null" }]
]

const ours = (
  api: Api
): ReadonlyArray<readonly [name: string, headers: Record<string, string>]> => [
  ["our own page", { "sec-fetch-site": "same-origin", origin: api.target.origin }],
  ["our own page behind a proxy", { "sec-fetch-site": "same-origin", origin: "https://x.example" }],
  ["a user's own click", { "sec-fetch-site": "none" }],
  ["our own page, in an old browser", { origin: api.target.origin }],
  ["a server", {}]
]

/** Requests that a form can send, without Content-Type. */
const posts: ReadonlyArray<readonly [name: string, request: (api: Api) => Request]> = [
  ["POST /subscriptions", (api) => subscription(api)],
  ["POST an empty broadcast", (api) => posted(api, `/channels/${api.channel}`, undefined)],
  ["POST a broadcast", (api) => posted(api, `/channels/${api.channel}`, { data: {} })],
  ["POST /batch", (api) => posted(api, "/batch", { requests: [] })]
]

/** Requests before which a browser asks. */
const preflighted: ReadonlyArray<readonly [string, (api: Api) => Request, status: number]> = [
  ["DELETE /subscriptions", () => ({ method: "DELETE", path: "/subscriptions" }), 200],
  ["DELETE /subscriptions/{id}", () => ({ method: "DELETE", path: "/subscriptions/abc" }), 404],
  ["PUT a registration", (api) => registration(api), 202],
  ["DELETE a registration", (api) => registration(api, "DELETE"), 202],
  [
    "PATCH a broadcast",
    () => ({ method: "PATCH", path: "/broadcasts/0", body: { data: { state: "cancelled" } } }),
    404
  ]
]

const subscription = (api: Api) => posted(api, "/subscriptions", { data: api.subscription() })

const posted = ({ target }: Api, path: string, body: unknown): Request => ({
  method: "POST",
  path,
  ...(path.startsWith("/channels/") ? { as: target.publisher } : {}),
  ...(body === undefined ? {} : { body: JSON.stringify(body) })
})

const cross = { "sec-fetch-site": "cross-site" }
const json = { "content-type": "application/json" }
const forms = ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain"]

/** A batch as a script can send it without a preflight. */
const forged = (api: Api): Request => ({
  ...posted(api, "/batch", {
    defaults: {
      headers: {
        "Sec-Fetch-Site": "same-origin",
        Origin: api.target.origin,
        "Content-Type": "application/json"
      }
    },
    requests: [registration(api)]
  }),
  headers: cross
})

export const crossSite: ReadonlyArray<Case> = [
  ...preflighted.map(([name, request, status]) =>
    define({
      name: `lets a page of another site ${name}, for which a browser asks first`,
      request: (api) => ({ ...request(api), headers: cross }),
      expected: { status }
    })
  ),
  ...posts.map(([name, request]) =>
    define({
      name: `refuses to ${name} for a page of another site that does not say it sends JSON`,
      only: isOfBrowsers,
      request: (api) => ({ ...request(api), headers: cross }),
      expected: { status: 400, errno: 107, details: ["header:Content-Type"] }
    })
  ),
  ...strangers.map(([name, headers]) =>
    define({
      name: `stores nothing for a page ${name} that does not say it sends JSON`,
      only: isOfBrowsers,
      request: (api) => ({ ...subscription(api), headers }),
      expected: { status: 400, errno: 107, details: ["header:Content-Type"] },
      also: async (_, api) => {
        const { json } = await api.send({ method: "GET", path: "/subscriptions" })
        expect(json.data).toEqual([])
      }
    })
  ),
  ...strangers.map(([name, headers]) =>
    define({
      name: `stores for a page ${name} by credentials that no browser adds by itself`,
      only: ({ isOfScripts }) => isOfScripts,
      request: (api) => ({ ...subscription(api), headers }),
      expected: { status: 201 }
    })
  ),
  ...strangers.map(([name, headers]) =>
    define({
      name: `stores for a page ${name} that says it sends JSON`,
      request: (api) => ({ ...subscription(api), headers: { ...headers, ...json } }),
      expected: { status: 201 }
    })
  ),
  define({
    name: "lets our own pages, users and servers change things without a Content-Type",
    request: { method: "GET" },
    expected: { status: 200 },
    also: async (_, api) => {
      for (const [name, headers] of ours(api))
        expect((await api.send({ ...subscription(api), headers })).status, name).toBeLessThan(300)
    }
  }),
  ...["Bearer", "portier"].map((scheme) =>
    define({
      name: `takes a batch of another site's page with ${scheme}, which no browser adds by itself`,
      request: (api) => ({
        ...posted(api, "/batch", { requests: [] }),
        as: null,
        headers: { ...cross, authorization: `${scheme} abc` }
      }),
      expected: { status: 200 }
    })
  ),
  define({
    name: "refuses a batch of another site's page whose entries claim to be ours",
    only: isOfBrowsers,
    request: forged,
    expected: { status: 400, errno: 107, details: ["header:Content-Type"] },
    also: async (_, api) => expect(await isRegistered(api)).toBe(false)
  }),
  define({
    name: "takes the entries of a batch that was taken, whatever they claim",
    request: (api) => ({
      ...posted(api, "/batch", {
        requests: [
          registration(api),
          { ...registration(api), headers: { "Sec-Fetch-Site": "cross-site", "Content-Type": "" } }
        ]
      }),
      headers: { ...cross, ...json }
    }),
    expected: { status: 200 },
    also: ({ json: { responses } }) =>
      expect(responses.map(({ status }: { status: number }) => status)).toEqual([202, 202])
  }),
  define({
    name: "judges the caller before the site that a request comes from",
    request: (api) => ({ ...subscription(api), as: null, headers: cross }),
    expected: { status: 401 }
  }),
  define({
    name: "lets a page of another site read, and follow a link",
    request: { method: "GET", path: "/subscriptions", headers: cross },
    expected: { status: 200 }
  }),
  ...forms.flatMap((type) => [
    ...["/batch", "/channels/c", "/subscriptions"].map((path) =>
      define({
        name: `refuses ${type} on POST ${path}, from wherever it comes`,
        request: ({ target: { publisher } }) => ({
          method: "POST",
          path,
          as: publisher,
          body: '{"a=":"b"}',
          headers: { "content-type": type }
        }),
        expected: { status: 415, errno: 107, details: ["header:Content-Type"] }
      })
    ),
    define({
      name: `refuses a broadcast by an empty form of another site that is ${type}`,
      only: isOfBrowsers,
      request: (api) => ({
        ...posted(api, "/channels/c", undefined),
        headers: { ...cross, "content-type": type }
      }),
      expected: { status: 400, errno: 107, details: ["header:Content-Type"] }
    })
  ])
]
