// Contract 5.1 to 5.5 and 7: endpoints about the server, and authentication.
import { createHmac } from "node:crypto"
import { expect } from "vitest"
import { type Api, basic } from "../api.ts"
import { type Case, define } from "../table.ts"

const isPair = (credentials: string) => (api: { target: { secret: string } }) => ({
  status: 200,
  body: {
    user: {
      id: `basicauth:${createHmac("sha256", api.target.secret).update(credentials).digest("hex")}`
    }
  }
})

const raw = (bytes: Buffer) => `Basic ${bytes.toString("base64")}`

const known: ReadonlyArray<readonly [name: string, authorization: string, credentials: string]> = [
  ["a pair", basic("mat:secret"), "mat:secret"],
  ["an empty password", basic("bob:"), "bob:"],
  ["a password with a colon", basic("a:b:c"), "a:b:c"],
  ["the scheme in small letters", basic("mat:secret").replace("Basic", "basic"), "mat:secret"],
  ["a name beyond ASCII", basic("é:ü"), "é:ü"],
  ["a name in Latin-1", raw(Buffer.from("é:ü", "latin1")), "é:ü"]
]

const strangers: ReadonlyArray<readonly [name: string, authorization: string]> = [
  ["an unknown scheme", "Bearer abc"],
  ["no pair", basic("nonsense")],
  ["an empty name", basic(":secret")],
  ["a scheme alone", "Basic"],
  ["what is no base64", "Basic !!!"],
  ["an empty header", ""]
]

const vectors: ReadonlyArray<readonly [credentials: string, id: string]> = [
  ["mat:secret", "5e4cea54f25e735d69f0abe2425848011e644cd6b517407152494e998e2bfce3"],
  ["bob:", "ec3bd31ad9f17802723c08dda88408c22bde707262b68ce3e3d8bafdc3d57a73"]
]

const publicKeyOf = async (api: Api): Promise<string> =>
  (await api.send({ method: "GET" })).json.capabilities.webpush.vapid_public_key

export const operational: ReadonlyArray<Case> = [
  define({
    name: "says what it is and what it can do",
    request: { method: "GET", as: null },
    expected: ({ root }) => ({
      status: 200,
      body: {
        url: root,
        http_api_version: "1.0",
        project_name: expect.any(String),
        project_version: expect.any(String),
        project_docs: expect.stringMatching(/^https?:/),
        settings: { batch_enabled: true, batch_max_requests: 25, readonly: false },
        capabilities: {
          basicauth: { description: expect.any(String), url: expect.any(String) },
          webpush: {
            description: expect.any(String),
            url: expect.any(String),
            vapid_public_key: expect.stringMatching(/^[A-Za-z0-9_-]{87}$/)
          }
        }
      }
    }),
    also: ({ json }) => {
      expect(json.user).toBeUndefined()
      expect(json.eos).toBeUndefined()
    }
  }),
  define({
    name: "says who is asking",
    request: { method: "GET" },
    expected: (api) => ({ status: 200, body: { user: { id: api.userId() } } }),
    also: ({ json }, api) => {
      expect([...json.user.principals].sort()).toEqual([
        api.userId(),
        "system.Authenticated",
        "system.Everyone"
      ])
    }
  }),
  ...known.map(([name, authorization, credentials]) =>
    define({
      name: `knows a user by ${name}`,
      request: { method: "GET", as: null, headers: { authorization } },
      expected: isPair(credentials)
    })
  ),
  ...vectors.map(([credentials, id]) =>
    define({
      name: `makes the id of ${credentials} as the contract has it`,
      request: { method: "GET", as: credentials },
      expected: (api) => ({
        status: 200,
        body: api.target.secret === "s3cr3t" ? { user: { id: `basicauth:${id}` } } : {}
      })
    })
  ),
  ...strangers.flatMap(([name, authorization]) => [
    define({
      name: `takes ${name} for nobody on a public endpoint`,
      request: { method: "GET", as: null, headers: { authorization } },
      expected: { status: 200 },
      also: ({ json }) => expect(json.user).toBeUndefined()
    }),
    define({
      name: `takes ${name} for nobody where somebody is needed`,
      request: { method: "GET", path: "/subscriptions", as: null, headers: { authorization } },
      expected: { status: 401, errno: 104, headers: { "WWW-Authenticate": 'Basic realm="Realm"' } }
    })
  ]),
  ...(
    [
      ["GET", "/subscriptions"],
      ["HEAD", "/subscriptions"],
      ["POST", "/subscriptions"],
      ["DELETE", "/subscriptions"],
      ["GET", "/subscriptions/abc"],
      ["PUT", "/subscriptions/abc"],
      ["DELETE", "/subscriptions/abc"],
      ["GET", "/channels/abc"],
      ["POST", "/channels/abc"]
    ] as const
  ).map(([method, path]) =>
    define({
      name: `asks nobody for credentials on ${method} ${path}`,
      request: { method, path, as: null },
      expected: {
        status: 401,
        errno: 104,
        message: /authenticate/,
        headers: { "WWW-Authenticate": /^Basic/ }
      }
    })
  ),
  define({
    name: "is in good health",
    request: { method: "GET", path: "/__heartbeat__", as: null },
    expected: {
      status: 200,
      exactly: { storage: true, cache: true, permission: true, space: true, delivery: true }
    }
  }),
  define({
    name: "is there",
    request: { method: "GET", path: "/__lbheartbeat__", as: null },
    expected: { status: 200, exactly: {} }
  }),
  define({
    name: "shows anybody the key of the root that browsers subscribe with, cacheable for minutes",
    given: publicKeyOf,
    request: {
      method: "GET",
      path: "/vapid-public-key",
      as: null,
      headers: { "if-none-match": '"0"' }
    },
    expected: (_, key) => ({
      status: 200,
      exactly: { data: { vapid_public_key: key } },
      headers: {
        ETag: `"${key}"`,
        "Cache-Control": "max-age=300",
        "Access-Control-Expose-Headers": /ETag/
      }
    })
  }),
  ...['"another", "KEY"', 'W/"KEY"', "*"].map((tags) =>
    define({
      name: `does not send the key again to who has it: ${tags}`,
      given: publicKeyOf,
      request: (_, key) => ({
        method: "GET",
        path: "/vapid-public-key",
        as: null,
        headers: { "if-none-match": tags.replace("KEY", String(key)) }
      }),
      expected: (_, key) => ({
        status: 304,
        headers: { ETag: `"${key}"`, "Cache-Control": "max-age=300" }
      })
    })
  ),
  define({
    name: "says how to contribute",
    request: { method: "GET", path: "/contribute.json", as: null },
    expected: {
      status: 200,
      body: {
        name: expect.any(String),
        description: expect.any(String),
        repository: expect.any(Object)
      }
    }
  }),
  define({
    name: "refuses a Host that could not stand in a URL",
    request: { method: "GET", as: null, headers: { host: "evil.example/path?x=<y>" } },
    expected: { status: 400, errno: 107 },
    also: ({ text }) => expect(text).not.toMatch(/evil/)
  })
]
