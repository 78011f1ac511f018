// Contract 1.1 to 1.7, 1.9, 1.10: versions, redirects, unknown paths, methods, HEAD, common
// headers.
import { expect } from "vitest"
import type { StoredObject } from "../api.ts"
import { type Case, define } from "../table.ts"

const redirects: ReadonlyArray<readonly [name: string, target: string, to: string]> = [
  ["the root", "/", "/v1/"],
  ["an unversioned path", "/subscriptions", "/v1/subscriptions"],
  [
    "an unversioned path with its query",
    "/subscriptions?_limit=2&a=b",
    "/v1/subscriptions?_limit=2&a=b"
  ],
  ["a version in capitals", "/V1/", "/v1/V1/"],
  ["a word that begins with v", "/version", "/v1/version"],
  ["escapes in a path as they are", "/channels/a%20b", "/v1/channels/a%20b"],
  ["a path of slashes", "//evil.example/x", "/v1//evil.example/x"]
]

const slashes: ReadonlyArray<readonly [name: string, target: string, to: string]> = [
  ["the bare prefix", "/v1", "/v1/"],
  ["the bare prefix with a query", "/v1?a=b", "/v1/?a=b"],
  ["a list", "/v1/subscriptions/", "/v1/subscriptions"],
  ["several slashes", "/v1/subscriptions///", "/v1/subscriptions"],
  ["a query", "/v1/subscriptions/?_limit=1", "/v1/subscriptions?_limit=1"],
  ["a path that does not exist", "/v1/nothing/", "/v1/nothing"],
  ["a channel without a name", "/v1/channels/", "/v1/channels"]
]

const unknown: ReadonlyArray<readonly [name: string, target: string, errno: number]> = [
  ["an unknown path", "/v1/nothing", 111],
  ["the demo of a development", "/v1/demo", 111],
  ["its page", "/v1/demo/index.html", 111],
  ["the console of another host", "/v1/console/", 111],
  ["a login at the console of another host", "/v1/console/session", 111],
  ["a path that is too deep", "/v1/channels/a/registration/b", 111],
  ["a path in the wrong case", "/v1/Subscriptions", 111],
  ["a slash hidden in a name", "/v1/channels/a%2Fb", 111],
  ["a slash hidden before a known segment", "/v1/channels/a%2Fregistration", 111],
  ["another version", "/v9/subscriptions", 116],
  ["version 0", "/v0/", 116],
  ["a version that begins with ours", "/v10/", 116],
  ["a word that begins with our version", "/v1foo", 116],
  ["a line break in an unversioned path", "/a%0D%0Ab", 116]
]

const allowed: ReadonlyArray<
  readonly [path: string, allow: string, refused: ReadonlyArray<string>]
> = [
  ["/", "GET, HEAD, DELETE, OPTIONS", ["POST", "PUT", "TRACE"]],
  ["/__heartbeat__", "GET, HEAD, OPTIONS", ["PUT"]],
  ["/__lbheartbeat__", "GET, HEAD, OPTIONS", ["POST"]],
  ["/__metrics__", "GET, HEAD, OPTIONS", ["POST"]],
  ["/__version__", "GET, HEAD, OPTIONS", ["POST"]],
  ["/client.js", "GET, HEAD, OPTIONS", ["POST"]],
  ["/worker.js", "GET, HEAD, OPTIONS", ["PUT"]],
  ["/words.js", "GET, HEAD, OPTIONS", ["PUT"]],
  ["/contribute.json", "GET, HEAD, OPTIONS", ["POST"]],
  ["/__api__", "GET, HEAD, OPTIONS", ["POST"]],
  ["/batch", "POST, OPTIONS", ["GET", "HEAD", "PUT"]],
  ["/subscriptions", "HEAD, GET, POST, DELETE, OPTIONS", ["PUT", "PATCH", "PROPFIND"]],
  ["/subscriptions/replace", "POST, OPTIONS", ["GET", "HEAD", "PUT", "DELETE"]],
  ["/subscriptions/abc", "GET, HEAD, PUT, DELETE, OPTIONS", ["POST", "PATCH"]],
  ["/subscriptions/abc/test", "POST, OPTIONS", ["GET", "HEAD", "PUT", "DELETE"]],
  ["/users/a:b", "GET, HEAD, DELETE, OPTIONS", ["POST", "PUT"]],
  ["/users/a:b/subscriptions/abc/restore", "POST, OPTIONS", ["GET", "HEAD", "PUT"]],
  ["/users/a:b/subscriptions", "DELETE, OPTIONS", ["GET", "HEAD", "POST", "PUT"]],
  ["/channels", "GET, HEAD, OPTIONS", ["POST", "PUT", "DELETE"]],
  ["/channels/abc", "POST, GET, HEAD, OPTIONS", ["PUT", "DELETE", "PATCH"]],
  ["/broadcasts", "GET, HEAD, POST, OPTIONS", ["PUT", "PATCH", "DELETE"]],
  ["/broadcasts/1/events", "GET, HEAD, OPTIONS", ["POST", "DELETE"]],
  ["/channels/a/broadcasts/1/events", "GET, HEAD, OPTIONS", ["POST", "DELETE"]],
  ["/broadcasts/1/pushes", "GET, HEAD, OPTIONS", ["POST", "DELETE"]],
  ["/broadcasts/1/timeline", "GET, HEAD, OPTIONS", ["POST", "DELETE"]],
  ["/broadcasts/1/redrive", "POST, OPTIONS", ["GET", "HEAD", "PUT"]],
  ["/dead", "GET, HEAD, OPTIONS", ["POST", "DELETE"]],
  ["/drafts", "GET, HEAD, OPTIONS", ["POST", "PUT", "DELETE"]],
  ["/drafts/abc", "GET, HEAD, PUT, DELETE, OPTIONS", ["POST", "PATCH"]],
  ["/drafts/abc/publish", "POST, OPTIONS", ["GET", "HEAD", "PUT", "DELETE"]],
  ["/broadcasts/1", "GET, HEAD, PATCH, OPTIONS", ["POST", "PUT", "DELETE"]],
  ["/channels/abc/registration", "PUT, DELETE, OPTIONS", ["GET", "HEAD", "POST"]],
  ["/registrations", "GET, HEAD, OPTIONS", ["PUT", "POST", "DELETE"]],
  ["/channels/abc/members", "GET, HEAD, OPTIONS", ["PUT", "POST", "DELETE"]],
  ["/channels/abc/members/a:b", "PUT, DELETE, OPTIONS", ["GET", "HEAD", "POST"]],
  ["/channels/abc/broadcasts", "GET, HEAD, OPTIONS", ["POST", "DELETE"]],
  ["/channels/abc/broadcasts/1", "GET, HEAD, PATCH, OPTIONS", ["PUT", "DELETE"]],
  ["/openid/a/login", "GET, HEAD, OPTIONS", ["POST"]],
  ["/openid/a/token", "GET, HEAD, OPTIONS", ["POST"]],
  ["/portier/login", "GET, HEAD, POST, OPTIONS", ["PUT"]],
  ["/portier/verify", "POST, OPTIONS", ["GET"]]
]

const undecodable = ["/v1/channels/%ff", "/%ff", "/v1/subscriptions/%c3", "/v1/%80/nothing"]

export const urls: ReadonlyArray<Case> = [
  ...redirects.map(([name, target, to]) =>
    define({
      name: `redirects ${name} below the version, absolutely`,
      request: { method: "GET", target, as: null },
      expected: ({ target: { origin } }) => ({
        status: 307,
        headers: { Location: `${origin}${to}`, "Cache-Control": null }
      })
    })
  ),
  ...["POST", "PUT", "PATCH", "DELETE", "HEAD"].map((method) =>
    define({
      name: `redirects an unversioned ${method}`,
      request: { method, target: "/subscriptions", as: null },
      expected: ({ root }) => ({ status: 307, headers: { Location: `${root}/subscriptions` } })
    })
  ),
  ...slashes.map(([name, target, to]) =>
    define({
      name: `takes the slashes off ${name} by a redirect that may be cached for an hour`,
      request: { method: "GET", target, as: null },
      expected: ({ target: { origin } }) => ({
        status: 307,
        headers: { Location: `${origin}${to}`, "Cache-Control": "max-age=3600", Expires: /GMT$/ }
      })
    })
  ),
  ...["/subscriptions/", "/subscriptions//?_limit=1", "/subscriptions/abc/"].map((path) =>
    define<StoredObject>({
      name: `removes nothing by DELETE ${path}, and leads nowhere`,
      given: (api) => api.stored(),
      request: { method: "DELETE", path },
      expected: { status: 404, errno: 111, headers: { Location: null } },
      also: async (_, api) => expect((await api.list()).json.data).toHaveLength(1)
    })
  ),
  ...unknown.map(([name, target, errno]) =>
    define({
      name: `does not know ${name}`,
      request: { method: "GET", target, as: null },
      expected: { status: 404, errno }
    })
  ),
  define({
    name: "does not know a login page of a policy that is off",
    only: ({ policy }) => policy !== "portier",
    request: { method: "GET", path: "/portier/login", as: null },
    expected: { status: 404, errno: 111 }
  }),
  ...allowed.flatMap(([path, allow, methods]) =>
    methods.map((method) =>
      define({
        name: `refuses ${method} ${path} and says what is allowed, whoever asks`,
        request: { method, path, as: null },
        expected: {
          status: 405,
          errno: 115,
          headers: { Allow: allow, "Access-Control-Expose-Headers": null }
        }
      })
    )
  ),
  ...undecodable.map((target) =>
    define({
      name: `refuses ${target}: it is not UTF-8`,
      request: { method: "GET", target, as: null },
      expected: { status: 400, errno: 107, body: { error: "Bad Request" } },
      also: ({ json }) => expect(json.details).toBeUndefined()
    })
  ),
  define({
    name: "judges the path before the method",
    request: { method: "PATCH", path: "/nothing", as: null },
    expected: { status: 404, errno: 111 }
  }),
  define({
    name: "judges the method before the caller",
    request: {
      method: "PUT",
      path: "/subscriptions",
      as: null,
      body: "nonsense",
      headers: { accept: "text/html" }
    },
    expected: { status: 405 }
  }),
  define({
    name: "keeps an escape that is none as it is",
    given: (api) => api.registered(`${api.channel}%zz`),
    request: (api) => ({ method: "GET", path: `/channels/${api.channel}%zz` }),
    expected: (api) => ({ status: 200, body: { data: { id: `${api.channel}%zz` } } })
  }),
  define({
    name: "takes an escaped letter for the letter",
    request: { method: "GET", path: "/subscription%73" },
    expected: { status: 200 }
  }),
  ...["/", "/__lbheartbeat__", "/__heartbeat__", "/contribute.json", "/__api__"].map((path) =>
    define({
      name: `responds to HEAD ${path} as GET, without a body`,
      request: { method: "HEAD", path, as: null },
      expected: {
        status: 200,
        headers: { "Content-Type": "application/json; charset=UTF-8", "Content-Length": /^\d+$/ }
      }
    })
  ),
  ...["/", "/__lbheartbeat__", "/contribute.json"].map((path) =>
    define({
      name: `ignores the query string of ${path}, even a broken one`,
      request: { method: "GET", path: `${path}?_since=nonsense&%ff`, as: null },
      expected: { status: 200 }
    })
  ),
  ...[
    ["GET", "/subscriptions?name=%ff"],
    ["DELETE", "/subscriptions?%ff"],
    ["POST", "/subscriptions?name=%ff"],
    ["GET", "/subscriptions/abc?name=%ff"],
    ["PUT", "/subscriptions/abc?name=%ff"],
    ["DELETE", "/subscriptions/abc?%ff"]
  ].map(([method = "", path = ""]) =>
    define({
      name: `refuses ${method} ${path}, whose query string is not UTF-8, without details`,
      request: (api) => ({
        method,
        path,
        ...(/^P/.test(method) ? { body: { data: api.subscription() } } : {})
      }),
      expected: { status: 400, errno: 107, body: { error: "Bad Request" } },
      also: ({ json }) => expect(json.details).toBeUndefined()
    })
  ),
  define({
    name: "leaves the default port out of the addresses in its responses",
    only: ({ namesHost }) => namesHost === undefined,
    given: async (api) => [await api.stored("a"), await api.stored("b")],
    request: {
      method: "GET",
      path: "/subscriptions?_limit=1",
      headers: { host: "push.example.net:80" }
    },
    expected: {
      status: 200,
      headers: { "Next-Page": /^http:\/\/push\.example\.net\/v1\/subscriptions\?/ }
    }
  })
]
