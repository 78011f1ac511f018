// Contract 6: settings of origins and proxies.
import type { Api, Request } from "../api.ts"
import { define, type Gateway } from "../table.ts"

const page = { origin: "https://page.ok.example" }
const unknown = { origin: "https://evil.example" }

/** Requests that do not lead to an endpoint. */
const elsewhere: ReadonlyArray<readonly [name: string, request: Request, status: number]> = [
  ["a 404", { method: "GET", path: "/nothing" }, 404],
  ["a 404 of another version", { method: "GET", target: "/v9/" }, 404],
  ["the redirect to the version", { method: "GET", target: "/subscriptions" }, 307],
  ["the redirect without slashes", { method: "GET", path: "/subscriptions/" }, 307],
  ["a 400 for a path that is no UTF-8", { method: "GET", target: "/%ff" }, 400],
  [
    "the preflight of an unversioned path",
    {
      method: "OPTIONS",
      target: "/subscriptions",
      headers: { "access-control-request-method": "PUT" }
    },
    200
  ]
]

const registration = (api: Api) => ({
  method: "PUT",
  path: `/channels/${api.channel}/registration`
})

export const addresses: ReadonlyArray<Gateway> = [
  [
    "behind a proxy",
    { HTTP_SCHEME: "https", HTTP_HOST: "push.example.net:8443" },
    [
      define({
        name: "names the proxy in its root",
        request: { method: "GET" },
        expected: { status: 200, body: { url: "https://push.example.net:8443/v1" } }
      }),
      define({
        name: "redirects to the proxy",
        request: { method: "GET", target: "/x" },
        expected: { status: 307, headers: { Location: "https://push.example.net:8443/v1/x" } }
      }),
      define({
        name: "pages at the proxy",
        given: async (api) => [await api.stored("a"), await api.stored("b")],
        request: { method: "GET", path: "/subscriptions?_limit=1" },
        expected: {
          status: 200,
          headers: { "Next-Page": /^https:\/\/push\.example\.net:8443\/v1\/subscriptions\?/ }
        }
      })
    ]
  ],
  [
    "of some origins",
    { CORS_ORIGINS: "https://*.ok.example http://local?host" },
    [
      define({
        name: "echoes an origin that fits",
        request: { method: "GET", headers: page },
        expected: {
          status: 200,
          headers: { "Access-Control-Allow-Origin": page.origin, Vary: "Origin" }
        }
      }),
      define({
        name: "lets no cache give a page the response to a request without Origin",
        request: { method: "GET", path: "/vapid-public-key", as: null },
        expected: {
          status: 200,
          headers: {
            "Access-Control-Allow-Origin": null,
            "Cache-Control": "max-age=300",
            Vary: "Origin"
          }
        }
      }),
      define({
        name: "lets pages of every origin load the client",
        request: { method: "GET", path: "/client.js", as: null, headers: unknown },
        expected: { status: 200, headers: { "Access-Control-Allow-Origin": "*" } }
      }),
      define({
        name: "refuses another",
        request: { method: "GET", headers: unknown },
        expected: {
          status: 400,
          errno: 107,
          details: ["header:Origin"],
          headers: { "Access-Control-Allow-Origin": null }
        }
      }),
      define({
        name: "takes a pattern for the whole of an origin, in its case",
        request: { method: "GET", headers: { origin: "HTTPS://page.ok.example" } },
        expected: { status: 400 }
      }),
      define({
        name: "takes a question mark for one character",
        request: { method: "GET", headers: { origin: "http://local-host" } },
        expected: { status: 200 }
      }),
      define({
        name: "looks at the caller before the origin",
        request: { method: "GET", path: "/subscriptions", as: null, headers: unknown },
        expected: { status: 401 }
      }),
      define({
        name: "looks at the origin before the query",
        request: { method: "GET", path: "/subscriptions?_limit=x", headers: unknown },
        expected: { status: 400, details: ["header:Origin"] }
      }),
      ...elsewhere.flatMap(([name, request, status]) => [
        define({
          name: `lets a page that may call read ${name}`,
          request: { ...request, headers: { ...request.headers, ...page } },
          expected: {
            status,
            headers: { "Access-Control-Allow-Origin": page.origin, Vary: "Origin" }
          }
        }),
        define({
          name: `hides ${name} from any other page`,
          request: { ...request, headers: { ...request.headers, ...unknown } },
          expected: { status, headers: { "Access-Control-Allow-Origin": null, Vary: "Origin" } }
        })
      ]),
      ...[
        { browser: "of an old browser", site: {} },
        { browser: "of a browser of today", site: { "sec-fetch-site": "same-origin" } }
      ].map(({ browser, site }) =>
        define({
          name: `takes a change from a page of its own, ${browser}`,
          request: (api) => ({
            ...registration(api),
            headers: { ...site, origin: api.target.origin, "content-type": "application/json" }
          }),
          expected: { status: 202, headers: { "Access-Control-Allow-Origin": null } }
        })
      ),
      ...["cross-site", "same-site"].map((site) =>
        define({
          name: `refuses a change from a ${site} page that names no origin`,
          request: (api) => ({
            ...registration(api),
            headers: { "sec-fetch-site": site, "content-type": "application/json" }
          }),
          expected: { status: 400, errno: 107, details: ["header:Origin"] }
        })
      ),
      define({
        name: "takes a change from a page that may call, whatever it says of its body",
        request: (api) => ({
          ...registration(api),
          headers: { ...page, "sec-fetch-site": "cross-site" }
        }),
        expected: { status: 202 }
      }),
      define({
        name: "takes a change from a server, which names no origin",
        request: registration,
        expected: { status: 202 }
      }),
      define({
        name: "lets a page of another site link to it",
        request: { method: "GET", headers: { "sec-fetch-site": "cross-site" } },
        expected: { status: 200 }
      }),
      define({
        name: "refuses a preflight of another origin",
        request: {
          method: "OPTIONS",
          headers: { ...unknown, "access-control-request-method": "GET" }
        },
        expected: { status: 400, details: ["header:Origin"] }
      }),
      define({
        name: "lets a page that may call keep its preflight for an hour",
        request: {
          method: "OPTIONS",
          headers: { ...page, "access-control-request-method": "GET" }
        },
        expected: {
          status: 200,
          headers: { "Access-Control-Max-Age": "3600", "Access-Control-Allow-Origin": page.origin }
        }
      })
    ]
  ]
]
