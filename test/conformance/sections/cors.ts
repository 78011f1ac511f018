// Contract 1.8: requests from pages of other origins.
import { expect } from "vitest"
import { type Case, define } from "../table.ts"

const page = { origin: "https://page.example" }
const base = [
  "Backoff",
  "Retry-After",
  "Alert",
  "Content-Length",
  "Content-Type",
  "WWW-Authenticate"
]
const list = [
  "Next-Page",
  "Total-Records",
  "Total-Objects",
  "Last-Modified",
  "ETag",
  "Cache-Control",
  "Expires",
  "Pragma"
]
const object = ["Last-Modified", "ETag", "Cache-Control", "Expires", "Pragma"]

const setOf = (header: unknown): ReadonlyArray<string> => String(header).split(/, ?/).sort()

const exposed: ReadonlyArray<
  readonly [method: string, path: string, extra: ReadonlyArray<string>]
> = [
  ["GET", "/", []],
  ["GET", "/__heartbeat__", []],
  ["GET", "/subscriptions", list],
  ["HEAD", "/subscriptions", list],
  ["GET", "/subscriptions/unknown", object],
  ["DELETE", "/subscriptions", ["Last-Modified", "ETag", "Next-Page", "Total-Records"]],
  ["POST", "/subscriptions", ["Last-Modified", "ETag", "Location"]],
  ["PUT", "/subscriptions/unknown", ["Last-Modified", "ETag", "Location"]],
  ["DELETE", "/subscriptions/unknown", ["Last-Modified", "ETag"]],
  ["GET", "/channels/unknown", ["Last-Modified", "ETag"]],
  ["GET", "/channels/unknown/members", ["Next-Page", "Total-Records"]],
  ["GET", "/registrations", ["Next-Page", "Total-Records"]],
  ["GET", "/broadcasts", ["Next-Page"]],
  ["HEAD", "/broadcasts", ["Next-Page"]],
  ["GET", "/channels/unknown/broadcasts", ["Next-Page"]],
  ["GET", "/broadcasts/0/pushes", ["Next-Page"]],
  ["GET", "/dead", ["Next-Page"]],
  ["GET", "/drafts", ["Next-Page"]],
  ["GET", "/drafts/unknown", object],
  ["PUT", "/drafts/unknown", ["Last-Modified", "ETag"]],
  ["DELETE", "/drafts/unknown", ["Last-Modified", "ETag"]],
  ["POST", "/drafts/unknown/publish", ["Location"]],
  ["GET", "/broadcasts/0", ["Last-Modified", "ETag"]],
  ["HEAD", "/broadcasts/0", ["Last-Modified", "ETag"]],
  ["GET", "/channels/unknown/broadcasts/0", ["Last-Modified", "ETag"]],
  ["PATCH", "/broadcasts/0", ["Last-Modified", "ETag"]],
  ["POST", "/channels/unknown", ["Location"]],
  ["POST", "/broadcasts", ["Location"]],
  ["POST", "/broadcasts/0/redrive", ["Location"]],
  ["POST", "/subscriptions/unknown/test", ["Location"]],
  ["GET", "/broadcasts/0/events", []],
  ["GET", "/nothing", []]
]

const preflights: ReadonlyArray<readonly [path: string, method: string, allow: string]> = [
  ["/", "GET", "GET,HEAD,DELETE,OPTIONS"],
  ["/batch", "POST", "POST,OPTIONS"],
  ["/subscriptions", "DELETE", "HEAD,GET,POST,DELETE,OPTIONS"],
  ["/subscriptions/abc", "PUT", "GET,HEAD,PUT,DELETE,OPTIONS"],
  ["/channels/abc", "POST", "POST,GET,HEAD,OPTIONS"],
  ["/channels/abc/registration", "DELETE", "PUT,DELETE,OPTIONS"]
]

export const cors: ReadonlyArray<Case> = [
  ...["/", "/subscriptions", "/nothing"].map((path) =>
    define({
      name: `lets any origin read GET ${path}`,
      request: { method: "GET", path, headers: page },
      expected: {
        status: path === "/nothing" ? 404 : 200,
        headers: { "Access-Control-Allow-Origin": "*", "Access-Control-Allow-Credentials": null }
      }
    })
  ),
  define({
    name: "lets any origin read a redirect",
    request: { method: "GET", target: "/subscriptions", headers: page },
    expected: { status: 307, headers: { "Access-Control-Allow-Origin": "*" } }
  }),
  define({
    name: "says nothing of origins to a request that names none",
    request: { method: "GET" },
    expected: { status: 200, headers: { "Access-Control-Allow-Origin": null } }
  }),
  define({
    name: "shows a 401 to a page",
    request: { method: "GET", path: "/subscriptions", as: null, headers: page },
    expected: {
      status: 401,
      headers: {
        "Access-Control-Allow-Origin": "*",
        "Access-Control-Expose-Headers": /WWW-Authenticate/
      }
    }
  }),
  define({
    name: "shows a 405 to a page, without exposing headers",
    request: { method: "PATCH", path: "/subscriptions", headers: page },
    expected: {
      status: 405,
      headers: { "Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": null }
    }
  }),
  ...exposed.map(([method, path, extra]) =>
    define<number>({
      name: `exposes exactly the headers of ${method} ${path}, whatever the status`,
      given: async (api) => (await api.send({ method, path })).status,
      request: { method, path },
      expected: (_, status) => ({ status }),
      also: ({ headers }) =>
        expect(setOf(headers["access-control-expose-headers"])).toEqual([...base, ...extra].sort())
    })
  ),
  ...preflights.map(([path, method, allow]) =>
    define({
      name: `responds to the preflight of ${method} ${path}, whoever asks`,
      request: {
        method: "OPTIONS",
        path,
        as: null,
        headers: {
          ...page,
          "access-control-request-method": method,
          "access-control-request-headers": "authorization, x-anything"
        }
      },
      expected: {
        status: 200,
        exactly: null,
        headers: {
          "Access-Control-Allow-Origin": "*",
          "Access-Control-Allow-Methods": allow,
          "Access-Control-Max-Age": "3600",
          "Access-Control-Expose-Headers": null
        }
      },
      also: ({ headers }) => {
        expect(setOf(headers["access-control-allow-headers"])).toEqual(
          expect.arrayContaining([...base, "authorization", "x-anything"])
        )
      }
    })
  ),
  define({
    name: "allows a preflight every header that the endpoint exposes",
    request: {
      method: "OPTIONS",
      path: "/subscriptions",
      as: null,
      headers: { ...page, "access-control-request-method": "GET" }
    },
    expected: { status: 200 },
    also: ({ headers }) =>
      expect(setOf(headers["access-control-allow-headers"])).toEqual(
        [...base, ...list, "Location"].sort()
      )
  }),
  define({
    name: "refuses a preflight without an origin",
    request: {
      method: "OPTIONS",
      path: "/subscriptions",
      as: null,
      headers: { "access-control-request-method": "GET" }
    },
    expected: { status: 400, errno: 107, details: ["header:Origin"] }
  }),
  define({
    name: "refuses a preflight without a method",
    request: { method: "OPTIONS", path: "/subscriptions", as: null, headers: page },
    expected: { status: 400, errno: 107, details: ["header:Access-Control-Request-Method"] }
  }),
  define({
    name: "refuses a preflight with neither, telling both",
    request: { method: "OPTIONS", path: "/", as: null },
    expected: { status: 400, details: ["header:Access-Control-Request-Method", "header:Origin"] }
  }),
  define({
    name: "refuses a preflight of a method that is not offered",
    request: {
      method: "OPTIONS",
      path: "/subscriptions",
      as: null,
      headers: { ...page, "access-control-request-method": "PATCH" }
    },
    expected: { status: 400, details: ["header:Access-Control-Request-Method"] }
  }),
  define({
    name: "knows no OPTIONS of an unknown path",
    request: { method: "OPTIONS", path: "/nothing", headers: page },
    expected: { status: 404 }
  }),
  define({
    name: "responds to OPTIONS of an unversioned path",
    request: { method: "OPTIONS", target: "/subscriptions", as: null, headers: page },
    expected: { status: 200, headers: { "Access-Control-Allow-Origin": "*" } },
    also: ({ text }) => expect(text).toBe("")
  }),
  ...["/subscriptions", "/v1/subscriptions/"].map((target) =>
    define({
      name: `lets a page follow the redirect of ${target} with any method and header`,
      request: {
        method: "OPTIONS",
        target,
        as: null,
        headers: {
          ...page,
          "access-control-request-method": "PUT",
          "access-control-request-headers": "authorization,content-type"
        }
      },
      expected: {
        status: 200,
        headers: {
          "Access-Control-Allow-Origin": "*",
          "Access-Control-Allow-Methods": "PUT",
          "Access-Control-Allow-Headers": "authorization,content-type",
          "Access-Control-Max-Age": "3600"
        }
      }
    })
  )
]
